"""From what the checks found to a verdict and to what a trainer is to do.

A verdict is the worst of what the table fixes (tier evidence) and of the probability against two thresholds. Findings
of tier text and anomalies alone never quarantine, however many. What rests on an agent's reasoning may raise a verdict
to `flag`, for the reviewers, and nothing else: a trainer that saw it would teach the policy to think elsewhere.
A check that erred changes nothing but its coverage; only where every fast check erred (the worker died) is it a `flag`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import ge
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from inspector import override, policy_file
from inspector.combine import Beta, bounded, heaviest, noisy_or
from inspector.group_policy import GroupJudgement, judge_group
from inspector.policy_file import BadPolicy, Fixed, PolicyFile, Ruling
from inspector.task import Declaration
from inspector.verdict import Action, Cause, Finding, Judgement, Outcome, Tier, Verdict

__all__ = ["BadPolicy", "GroupJudgement", "Policy", "exportable", "load"]

Precision = Callable[[str, int, Tier, Cause], Beta]  # of a check and version, for this tier and cause
Recall = Callable[[str, int], float]  # of a check and version
Calibrated = Callable[[float, Mapping[str, float]], float]  # from the noisy-OR and each `check@version`'s score; more of either never lowers it
Probable = Callable[[Iterable["Weighed"]], float]


class Laned(Protocol):
    """A check, or the note of its selection: all that is asked of it here is its lane."""

    @property
    def late(self) -> bool: ...


class Weighed(NamedTuple):
    """A finding with what the policy makes of it."""

    finding: Finding
    ruling: Ruling
    line: int  # of the ruling in the table
    precision: Beta
    weight: float  # precision x score

    @property
    def by(self) -> str:
        return f"{self.finding.check}@{self.finding.version}"

    @property
    def may_quarantine(self) -> bool:
        """Not what an agent said, nor that it is unusual."""
        return self.weight > 0 and self.finding.tier is not Tier.TEXT and self.finding.cause is not Cause.ANOMALY


class Policy(PolicyFile, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A versioned set of rules; severity is never a check's own."""

    @property
    def name(self) -> str:
        """As decisions name it, `default@1`."""
        return f"{self.id}@{self.version}"

    @property
    def digest(self) -> str:
        """Of every value in it."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()[:16]

    def precision(self, check: str, version: int, tier: Tier, cause: Cause) -> Beta:
        """What is believed of a check before there are labels: as the file says of it, else of its kind."""
        if (own := self.checks.get(check)) is not None and own.precision is not None:
            return own.precision
        return self.prior_precision.anomaly if cause is Cause.ANOMALY else getattr(self.prior_precision, tier)

    def recall(self, check: str, version: int) -> float:
        """What is believed of a check before its recall was measured."""
        return self.believed_recall(check).mean

    def believed_recall(self, check: str) -> Beta:
        """The same, with how much it is believed."""
        own = self.checks.get(check)
        return own.recall if own is not None and own.recall is not None else self.prior_recall

    def honest_mean(self, total: float, count: int, declaration: Declaration) -> float | None:
        """The mean of `count` kept rewards that sum to `total`, shrunk towards the declared minimum; None where none is declared."""
        low = declaration.reward.min
        return None if low is None else (total + self.shrinkage * low) / (count + self.shrinkage)

    def judge(
        self,
        findings: Iterable[Finding],
        outcomes: bytes,
        checks: Sequence[Laned] = (),
        *,
        declaration: Declaration,
        reward: float | None,
        honest_mean: float | None = None,
        recall: Recall | None = None,
        precision: Precision | None = None,
        calibrated: Calibrated | None = None,
    ) -> Judgement:
        """One subject's verdict and action. `outcomes` holds one byte a check; without `checks` all are taken to be of the fast lane.

        What facts prove is decided by the table, whatever is `calibrated`.
        """
        findings = tuple(findings)
        fast = _fast(outcomes, checks)
        exported = exportable(findings)
        everything = self.weigh(findings, precision or self.precision)
        shown = everything if len(exported) == len(findings) else self.weigh(exported, precision or self.precision)
        probable = partial(self.probability, calibrated=calibrated)
        probability = probable(everything)
        if waiting := fast.count(Outcome.PENDING):
            return Judgement(verdict=Verdict.PENDING, probability=probability, action=Action.HOLD, reasons=(f"{waiting} fast checks have not run yet",))
        if self._verdict(shown, probable) is Verdict.QUARANTINE:
            proofs = [w for w in shown if self._proves(w)]
            excluded = self._excluded(shown, proofs, probability, probable)
            return self._overridden(excluded, proofs, declaration, reward, honest_mean, recall or self.recall) if proofs else excluded
        died = bool(fast) and fast.count(Outcome.ERROR) == len(fast)
        suspected = self._verdict(everything, probable) > Verdict.ACCEPT
        return self._kept(shown, probability, probable, died=died, flagged=died or suspected)

    @staticmethod
    def judge_group(judgements: Sequence[Judgement], rewards: Sequence[float | None]) -> GroupJudgement:
        """See `group_policy.judge_group`."""
        return judge_group(judgements, rewards)

    def probability(self, weighed: Iterable[Weighed], calibrated: Calibrated | None = None) -> float:
        """That the trajectory is not to be used as it is."""
        counting = [w for w in weighed if w.ruling.weighs]
        noisy = noisy_or(self.prior, heaviest((w.finding.check, w.weight) for w in counting))
        return noisy if calibrated is None else calibrated(noisy, heaviest((w.by, bounded(w.finding.score)) for w in counting))

    def weigh(self, findings: Iterable[Finding], precision: Precision) -> list[Weighed]:
        """What the policy makes of each, most deciding first: by the line of the table, then by weight."""
        weighed = []
        for finding in findings:
            line = self._line(finding)
            believed = precision(finding.check, finding.version, finding.tier, finding.cause)
            weighed.append(Weighed(finding, self.table[line], line, believed, believed.mean * bounded(finding.score)))
        return sorted(weighed, key=lambda w: (w.line, -w.weight, w.finding.check))

    def _line(self, finding: Finding) -> int:
        key = (finding.tier, finding.cause)
        special = (finding.grave, finding.p_value is not None)
        lines = [at for at, ruling in enumerate(self.table) if (ruling.tier, ruling.cause) == key and all(map(ge, special, ruling.special))]
        return max(lines, key=lambda at: self.table[at].special)

    def _verdict(self, weighed: Sequence[Weighed], probable: Probable) -> Verdict:
        if not weighed:
            return Verdict.ACCEPT
        fixed = max((Verdict[w.ruling.verdict.name] for w in weighed if w.ruling.verdict is not Fixed.BY_PROBABILITY), default=Verdict.ACCEPT)
        probability = probable(weighed)
        if probability >= self.thresholds.quarantine and any(w.may_quarantine for w in weighed if w.ruling.weighs):
            return Verdict.QUARANTINE
        return max(fixed, Verdict.FLAG) if probability >= self.thresholds.flag else fixed

    def _kept(self, weighed: Sequence[Weighed], probability: float, probable: Probable, *, died: bool, flagged: bool) -> Judgement:
        if not flagged:
            return Judgement(verdict=Verdict.ACCEPT, probability=probability, action=Action.KEEP)
        reaching = self._reaching(self.thresholds.flag, weighed, probable)
        deciding = [w for w in weighed if w.ruling.verdict is Fixed.FLAG or w in reaching]
        reasons = [_reason(w) for w in _once(deciding)] + ["every fast check ended in an error"] * died
        return Judgement(
            verdict=Verdict.FLAG,
            probability=probability,
            action=Action.KEEP,
            cause=_cause(deciding),
            reasons=tuple(reasons),
            deciding=_names(deciding),
        )

    def _excluded(self, weighed: Sequence[Weighed], proofs: Sequence[Weighed], probability: float, probable: Probable) -> Judgement:
        quarantining = [w for w in weighed if w.ruling.quarantines]
        deciding = proofs or quarantining or self._reaching(self.thresholds.quarantine, weighed, probable)
        cause = _cause(deciding)
        return Judgement(
            verdict=Verdict.QUARANTINE,
            probability=probability,
            action=Action.EXCLUDE,
            cause=cause,
            retry=cause in self.retry,
            reasons=tuple(_reason(w) for w in _once(deciding)),
            deciding=_names(deciding),
        )

    def _overridden(
        self, excluded: Judgement, proofs: Sequence[Weighed], declaration: Declaration, reward: float | None, honest_mean: float | None, recall: Recall
    ) -> Judgement:
        """The proved exploit loses its reward, or stays excluded where no allowed reward makes it lose."""
        if reward is None:
            return _because(excluded, "it was not scored: there is no reward to override")
        # caught by either is at least as likely as caught by the better one
        q = max(recall(w.finding.check, w.finding.version) for w in proofs)
        value = override.replacement(declaration, reward, honest_mean=honest_mean, recall=q)
        if value is None:
            judgement = _because(excluded, "no reward that the environment declares lets the exploit lose")
            return msgspec.structs.replace(judgement, confirmed_exploit=override.gained(declaration, reward))
        judgement = _because(excluded, f"the reward {reward:g} becomes {value:g}, so that the exploit loses against honest work")
        return msgspec.structs.replace(judgement, action=Action.OVERRIDE_REWARD, reward_override=value, retry=False)

    def _proves(self, weighed: Weighed) -> bool:
        """Whether this finding alone takes the reward away."""
        if weighed.ruling.action is not Action.OVERRIDE_REWARD:
            return False
        return weighed.ruling.quarantines or (weighed.weight >= self.thresholds.quarantine and weighed.precision.lower >= self.thresholds.proof)

    def _reaching(self, threshold: float, weighed: Sequence[Weighed], probable: Probable) -> list[Weighed]:
        """The fewest checks, heaviest first, that reach the threshold together: who is to answer for it. Nobody where it is not reached."""
        chosen: dict[str, Weighed] = {}
        for w in sorted(weighed, key=lambda w: -w.weight):
            if w.ruling.weighs:
                chosen.setdefault(w.finding.check, w)
            if chosen and probable(chosen.values()) >= threshold:
                return list(chosen.values())
        return []


def load(path: str | Path | None = None) -> Policy:
    """The policy in that file; None or empty means the default one. Raises BadPolicy naming the file, the path in it and the value."""
    return policy_file.read(Path(path) if path else None, Policy)


def exportable(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Those that a trainer may learn of: not what rests on the agent's reasoning, by its mark or by where it points."""
    return tuple(f for f in findings if not f.from_reasoning and not any("reasoning_content" in span.field for span in f.spans))


def _fast(outcomes: bytes, checks: Sequence[Laned]) -> bytes:
    """The outcomes of the fast lane; an entry that is missing is pending."""
    if not checks:
        return outcomes
    complete = outcomes.ljust(len(checks), bytes([Outcome.PENDING]))
    return bytes(outcome for outcome, check in zip(complete, checks, strict=True) if not check.late)


def _once(weighed: Iterable[Weighed]) -> list[Weighed]:
    """The first finding of each check and cause."""
    return list({(w.by, w.finding.cause): w for w in reversed(list(weighed))}.values())[::-1]


def _reason(weighed: Weighed) -> str:
    """Without the finding's own message: that may quote the agent."""
    return f"{weighed.by}: {weighed.finding.cause.replace('_', ' ')}, by {weighed.finding.tier}"


def _because(judgement: Judgement, reason: str) -> Judgement:
    return msgspec.structs.replace(judgement, reasons=(*judgement.reasons, reason))


def _cause(deciding: Sequence[Weighed]) -> Cause | None:
    return deciding[0].finding.cause if deciding else None


def _names(deciding: Sequence[Weighed]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(w.by for w in deciding))
