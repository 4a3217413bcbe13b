"""From what the checks said of a block to verdict rows and to entries of the feed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from inspector.audit.beliefs import Belief
from inspector.audit.plans import Plan
from inspector.audit.subjects import Audited
from inspector.policy import Policy
from inspector.store import verdicts
from inspector.store.decisions import Numbered
from inspector.store.verdicts import NewFinding, NewVerdict
from inspector.task import State
from inspector.verdict import Action, Decision, Finding, Judgement, Mode, Outcome, Scope, Verdict


class Judged(NamedTuple):
    """An audited trajectory with what the policy made of it."""

    audited: Audited
    plan: Plan
    judgement: Judgement
    belief: Belief
    author: str | None = None  # where not the policy decided

    @property
    def deciding(self) -> set[int]:
        """Ids of the check versions that the action rests on."""
        ids = (self.plan.ids.get(split(name)) for name in self.judgement.deciding)
        return {id_ for id_ in ids if id_ is not None}

    @property
    def final(self) -> bool:
        """Nothing late is to come: no group to be decided with, nor checks of it."""
        return self.audited.subject.group_id is None


class Circumstances(NamedTuple):
    """What holds while a block is decided."""

    modes: Mapping[int, Mode]
    stopped: Mapping[int, set[int]]  # run -> check versions whose enforcement is stopped there
    hold_s: float = 0.0  # how long a trainer is asked to wait for late checks

    def mode(self, run: int | None) -> Mode:
        """What belongs to no run is observed."""
        return self.modes.get(run, Mode.OBSERVE) if run is not None else Mode.OBSERVE

    def enforced(self, run: int | None, deciding: set[int]) -> bool:
        """Whether a check that is not stopped stands behind it."""
        stopped = self.stopped.get(run, set()) if run is not None else set()
        return not deciding or bool(deciding - stopped)


def judge(policy: Policy, audited: Audited, plan: Plan, honest_mean: float | None, belief: Belief) -> Judgement:
    """The policy's judgement, without what rests on revoked checks."""
    findings = audited.assessment.findings
    if plan.revoked:
        findings = tuple(f for f in findings if plan.ids.get((f.check, f.version)) not in plan.revoked)
    if not findings and Outcome.ERROR not in audited.assessment.outcomes and Outcome.PENDING not in audited.assessment.outcomes:
        return Judgement(verdict=Verdict.ACCEPT, probability=belief.without_findings(audited.header.environment.id), action=Action.KEEP)  # most are
    return policy.judge(
        findings,
        audited.assessment.outcomes,
        plan.selected,
        declaration=audited.declaration,
        reward=audited.subject.reward,
        honest_mean=honest_mean,
        recall=belief.recall,
        precision=belief.precision,
        calibrated=belief.calibrated(audited.header.environment.id),
    )


def held(judged: Judged, states: Mapping[tuple[int, int], State]) -> Judged:
    """The same, or on hold where a late check has not spoken yet of a task under probation or quarantine; `states` are by (project, task)."""
    state = states.get((judged.audited.subject.project, judged.audited.subject.task))
    if judged.judgement.action is not Action.KEEP or state not in (State.PROBATION, State.QUARANTINED):
        return judged
    waiting = judged.audited.assessment.outcomes.count(Outcome.PENDING)
    reason = f"{waiting} late checks have not run yet, and the state is {state}"
    return judged._replace(judgement=msgspec.structs.replace(judged.judgement, action=Action.HOLD, reasons=(*judged.judgement.reasons, reason)))


def verdict_row(judged: Judged, earlier: NewVerdict | None) -> NewVerdict:
    """What is stored; a person's decision outlives another audit."""
    audited, subject = judged.audited, judged.audited.subject
    assessment, policy = audited.assessment, judged.belief.policy
    row = verdicts.row(
        subject.key, subject.project, audited.content or 0, policy, judged.judgement, assessment.outcomes, dict(assessment.notes), final=judged.final
    )
    row = row._replace(content=audited.content, state=audited.state, answer=audited.answer)
    if earlier is None:
        return row
    if earlier.by_person:
        kept = {name: getattr(earlier, name) for name in ("verdict", "action", "cause", "reward_override", "by_person", "retry")}
        return row._replace(**kept, open=False, final=True, seq=earlier.seq)
    return row._replace(seq=earlier.seq)


def finding_rows(judged: Judged) -> list[NewFinding]:
    """The findings of a trajectory, those that decide first, then by score."""
    deciding = judged.deciding
    ids = [(judged.plan.ids[f.check, f.version], f) for f in judged.audited.assessment.findings]
    ordered = sorted(ids, key=lambda pair: (pair[0] not in deciding, -pair[1].score))
    return [verdicts.finding_row(judged.audited.subject.key, at, id_, f, deciding=id_ in deciding) for at, (id_, f) in enumerate(ordered)]


def feed_entry(judged: Judged, row: NewVerdict, earlier: NewVerdict | None, now: Circumstances, author: str) -> Numbered | None:
    """What the feed has to say of it: nothing where it is kept and nothing else was logged before."""
    logged = earlier.seq if earlier else None
    if row.by_person or (judged.judgement.action is Action.KEEP and logged is None):
        return None
    if earlier is not None and logged is not None and _same(row, earlier):
        return None
    header, subject, judgement = judged.audited.header, judged.audited.subject, judged.judgement
    decision = Decision(
        seq=0,
        scope=Scope.TRAJECTORY,
        action=judgement.action,
        cause=judgement.cause,
        trajectory=header.id,
        key=str(subject.key),
        group=header.group.id if header.group else None,
        environment=header.environment.id,
        version=header.environment.version,
        task=header.task.id,
        run=header.run.id if header.run else None,
        reward_override=judgement.reward_override,
        retry=judgement.retry,
        until=datetime.now(UTC) + timedelta(seconds=now.hold_s) if judgement.action is Action.HOLD else None,
        final=row.final,
        author=author,
        mode=now.mode(subject.run),
        enforced=now.enforced(subject.run, judged.deciding),
        reasons=judgement.reasons,
        evidence=tuple(evidence(str(subject.key), judged.audited.assessment.findings)),
        supersedes=logged,
        decided_at=datetime.now(UTC),
    )
    return Numbered(decision, subject.key)


def evidence(key: str, findings: tuple[Finding, ...]) -> list[str]:
    """Where the findings of a trajectory can be read."""
    return [f"/v1/trajectories/{key}#{f.check}@{f.version}" for f in findings if not f.from_reasoning]


def _same(row: NewVerdict, earlier: NewVerdict) -> bool:
    return (row.action, row.cause, row.reward_override, row.retry) == (earlier.action, earlier.cause, earlier.reward_override, earlier.retry)


def split(name: str) -> tuple[str, int]:
    check, _, version = name.rpartition("@")
    return check, int(version)
