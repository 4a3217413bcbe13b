"""What a trainer is told: advice for a trajectory, admission of an environment version or task."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

import msgspec

from inspector.task import State
from inspector.verdict import Action, Cause, Decision, Mode, Rollback

Word = TypeVar("Word", bound=StrEnum)
TRAINED_ON = (Action.KEEP, Action.OVERRIDE_REWARD)


class Advice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What to do with one trajectory; it binds only in enforce mode (see `binding`)."""

    id: str
    action: Action = Action.KEEP  # keep | exclude | override_reward; a hold is already resolved by the fail mode
    reward_override: float | None = None
    cause: Cause | None = None
    final: bool = False
    unaudited: bool = False  # nobody judged it: the service was away, late or still holds it
    held: bool = False  # the service asked to wait; a trainer with a buffer may ask again until `until`
    until: datetime | None = None
    retry: bool = False  # a new rollout of the same task may succeed
    mode: Mode = Mode.OBSERVE
    enforced: bool = True
    group: str | None = None
    reason: str = ""  # why it is unaudited

    @property
    def binding(self) -> bool:
        """Whether the trainer is to act on it; otherwise it only says what would have been done."""
        return self.enforced and self.mode is Mode.ENFORCE


class Decisions(Mapping[str, Advice]):
    """The advice for one call of `decide`: by the trajectory's id, or as `advices` in the order of what was passed in."""

    def __init__(self, advices: Sequence[Advice], *, epoch: str = "", seq: int = 0) -> None:
        self.advices = tuple(advices)
        self.epoch, self.seq = epoch, seq  # how far the local view was
        self._by_id = {advice.id: advice for advice in self.advices}

    def __getitem__(self, trajectory_id: str) -> Advice:
        return self._by_id[trajectory_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_id)

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def unaudited(self) -> int:
        """How many were not judged in time."""
        return sum(advice.unaudited for advice in self.advices)


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """Whether to roll out, or to learn from, an environment version or one of its tasks."""

    admitted: bool
    state: State = State.ACTIVE
    sampling_weight: float = 1.0  # below 1 under probation
    audit_rate: float = 0.0  # the share of its groups that the service wants to be shown at least
    mode: Mode = Mode.OBSERVE
    would_refuse: bool = False  # what enforce mode would have done

    def __bool__(self) -> bool:
        return self.admitted


class RollbackAdvice(msgspec.Struct, frozen=True, kw_only=True):
    """To go back to a checkpoint: bad trajectories carried too much of what was learnt since."""

    run: str
    policy_version: int  # to go back to
    checkpoint: str | None  # as `report_step` named it; None: none was saved before, the run begins anew
    last_clean: int  # a version up to here is as good
    first_step: int  # of the updates that drew too much from bad trajectories
    last_step: int
    share: float  # of the absolute reward of the worst of them
    cause: Cause | None = None  # None where there are several
    reason: str = ""
    seq: int = 0


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """A run as this process trains it, from one version on without going back."""

    attempt: str = msgspec.field(default_factory=lambda: secrets.token_hex(4))
    began_from: int | None = None  # None: nothing was said of it yet
    newest: int = 0  # the version that the last update began from

    def gone_on(self, policy_before: int) -> Life:
        """The life in which the next update, from that version, is told."""
        if self.began_from is not None and policy_before < self.newest:
            return Life(began_from=policy_before, newest=policy_before)
        began_from = policy_before if self.began_from is None else self.began_from
        return Life(attempt=self.attempt, began_from=began_from, newest=policy_before)

    def follows(self, rollback: Rollback) -> bool:
        """Whether it went back already, by advice about what another life of the run learnt."""
        return self.attempt != rollback.attempt and self.began_from is not None and self.began_from <= rollback.last_clean


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """A decision as the answer to a post or a lookup carries it; words that this client does not know stay text."""

    action: str
    final: bool = False
    reward_override: float | None = None
    cause: str | None = None
    mode: str | None = None
    enforced: bool = True
    seq: int | None = None
    retry: bool = False
    until: datetime | None = None


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What `decide` knows of a trajectory before it is posted."""

    id: str
    group: str | None = None
    refusal: str = ""  # why it cannot be posted at all


def known(kind: type[Word], word: str | None) -> Word | None:
    """The member of that value, None for what a newer service may say."""
    return kind(word) if word is not None and word in kind._value2member_map_ else None


def lowered(mode: Mode, ceiling: Mode | None) -> Mode:
    """The run's mode; a client may lower enforce to observe, never raise it."""
    return Mode.OBSERVE if ceiling is Mode.OBSERVE else mode


class FailMode(StrEnum):
    """What happens to what was not judged in time."""

    OPEN = "open"  # kept, marked unaudited
    CLOSED = "closed"  # its whole group is excluded


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """How this client reads the service's words: fail mode, and how far its mode may go."""

    fail_mode: FailMode = FailMode.OPEN
    ceiling: Mode | None = None
    mode: Mode | None = None  # of the run, as last heard; None before anything was heard

    def unaudited(self, asked: Asked, reason: str) -> Advice:
        """Advice without a judgement. A closed client that never heard its run's mode takes its own word for it and excludes."""
        heard = self.mode or (Mode.ENFORCE if self.fail_mode is FailMode.CLOSED else Mode.OBSERVE)
        action = Action.EXCLUDE if self.fail_mode is FailMode.CLOSED else Action.KEEP
        return Advice(id=asked.id, group=asked.group, action=action, unaudited=True, mode=lowered(heard, self.ceiling), reason=reason)

    def advice(self, asked: Asked, ruling: Ruling) -> Advice:
        """Advice from what the service decided."""
        action = known(Action, ruling.action)
        if action is Action.HOLD:
            return msgspec.structs.replace(self.unaudited(asked, "held"), held=True, until=ruling.until)
        if action not in (*TRAINED_ON, Action.EXCLUDE) or (action is Action.OVERRIDE_REWARD and ruling.reward_override is None):
            return self.unaudited(asked, f"unknown action {ruling.action!r}")
        mode = lowered(known(Mode, ruling.mode) or self.mode or Mode.OBSERVE, self.ceiling)
        cause = known(Cause, ruling.cause)
        return Advice(
            id=asked.id, group=asked.group, action=action, reward_override=ruling.reward_override, cause=cause, final=ruling.final,
            retry=ruling.retry, mode=mode, enforced=ruling.enforced,
        )  # fmt: skip

    def standing(self, trajectory_id: str, decision: Decision) -> Advice:
        """Advice from an entry of the feed."""
        ruling = Ruling(
            action=decision.action, final=decision.final, reward_override=decision.reward_override, cause=decision.cause,
            mode=decision.mode, enforced=decision.enforced, seq=decision.seq, retry=decision.retry, until=decision.until,
        )  # fmt: skip
        return self.advice(Asked(id=trajectory_id, group=decision.group), ruling)


def with_their_groups(advices: Sequence[Advice]) -> tuple[Advice, ...]:
    """The same advice, where one unaudited exclusion takes its whole group along."""
    lost: Mapping[str, Advice] = {advice.group: advice for advice in advices if advice.group is not None and takes_its_group(advice)}
    return tuple(_with_group(advice, lost.get(advice.group) if advice.group is not None else None) for advice in advices)


def takes_its_group(advice: Advice) -> bool:
    """Whether nothing of its group may be used: it is unaudited, and the fail mode is closed."""
    return advice.unaudited and advice.action is Action.EXCLUDE


def _with_group(advice: Advice, lost: Advice | None) -> Advice:
    if lost is None or advice.action is Action.EXCLUDE:
        return advice
    return msgspec.structs.replace(
        advice, action=Action.EXCLUDE, reward_override=None, final=False, mode=lost.mode, reason=f"its group holds the unaudited {lost.id}"
    )
