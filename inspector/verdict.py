"""What the checks say of a subject, and what a trainer is to do about it."""

from __future__ import annotations

from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Annotated

import msgspec

from inspector.task import State


class Tier(StrEnum):
    """Where a finding's evidence comes from; each is scored apart from the others."""

    EVIDENCE = "evidence"  # facts collected outside the agent
    ACTION = "action"  # what the agent did
    TEXT = "text"  # what it said


class Cause(StrEnum):
    """Whose fault it is, which decides what a trainer should do."""

    POLICY_EXPLOIT = "policy_exploit"
    VERIFIER_DEFECT = "verifier_defect"
    ENVIRONMENT_DEFECT = "environment_defect"
    INFRASTRUCTURE = "infrastructure"
    RECORD_DEFECT = "record_defect"
    ANOMALY = "anomaly"


class Outcome(IntEnum):
    """Of one check on one subject. The numbers are stored: one byte a check."""

    PENDING = 0  # a check that has not run yet never clears an episode
    CLEAN = 1
    FLAGGED = 2
    INCONCLUSIVE = 3
    NOT_ASSESSED = 4
    ERROR = 5

    @property
    def word(self) -> str:
        """As it is shown and sent."""
        return self.name.lower()


class Verdict(IntEnum):
    """Of all checks on one subject; a larger number is worse."""

    PENDING = 0
    ACCEPT = 1
    FLAG = 2
    QUARANTINE = 3  # this subject is not to be used as it is

    @property
    def word(self) -> str:
        return self.name.lower()


class Action(StrEnum):
    """What a trainer is to do."""

    KEEP = "keep"
    EXCLUDE = "exclude"  # out of the loss and of the group's baseline
    OVERRIDE_REWARD = "override_reward"
    HOLD = "hold"
    ADVISE_ROLLBACK = "advise_rollback"
    SET_STATE = "set_state"  # of a task or an environment version


class Scope(StrEnum):
    """What a decision speaks of."""

    TRAJECTORY = "trajectory"
    GROUP = "group"
    TASK = "task"
    ENVIRONMENT_VERSION = "environment_version"
    RUN = "run"


class Mode(StrEnum):
    """Whether a run's client acts on what is decided."""

    OBSERVE = "observe"
    ENFORCE = "enforce"


class Span(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where in the transcript a finding points: characters [start, end) of `field` of the step at position `step`."""

    step: int  # position in `trajectory.steps`, from 0
    field: str  # message | reasoning_content | tool_calls[i].arguments.NAME | observation.results[i].content | …
    start: int = 0
    end: int = 0
    quote: str = ""


Score = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of evidence. A check gives message, score and spans; the engine adds who found it."""

    message: str
    score: float = 1.0  # in [0, 1]; higher is more suspicious
    spans: tuple[Span, ...] = ()
    p_value: float | None = None  # from a check that bounds the share of its findings that are wrong
    grave: bool = False  # of a record defect: the reward, the group or the tokens are wrong
    from_reasoning: bool = False  # rests on the agent's reasoning text: never exported to a trainer
    check: str = ""
    version: int = 0
    tier: Tier = Tier.EVIDENCE
    cause: Cause = Cause.ANOMALY


class Selected(msgspec.Struct, frozen=True, kw_only=True):
    """One check as it was chosen for a trajectory at intake."""

    check: str
    version: int
    parameters: str  # digest of its parameters
    late: bool = False


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What the policy made of a subject's findings."""

    verdict: Verdict
    probability: float
    action: Action
    cause: Cause | None = None
    reward_override: float | None = None
    retry: bool = False  # a new rollout may succeed
    confirmed_exploit: bool = False  # counts against the task
    reasons: tuple[str, ...] = ()
    deciding: tuple[str, ...] = ()  # the checks that the action rests on, as name@version


class Rollback(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run is advised to go back to, and why."""

    policy_version: int  # of the last checkpoint that was saved before anything bad was used
    checkpoint: str | None  # as the trainer named it; None: none was saved, the run begins anew
    last_clean: int  # the last policy version before the first update that is to be undone
    first_step: int  # of the updates that bad trajectories carried too much of
    last_step: int
    updates: int  # how many those are
    undone: int  # updates that going back gives up
    rows: int  # bad ones that were used
    share: float  # of the absolute reward that the worst of them drew from bad trajectories
    attempt: str = ""  # of the newest update: what is told under another one afterwards may have followed the advice already


class Impact(msgspec.Struct, frozen=True, kw_only=True):
    """What is left of a group of which rows are out, or have another reward."""

    rows: int  # that were audited
    left: int  # of them, with a reward to learn from
    zero_variance: bool  # those all have the same reward: nothing is learnt from them where rewards are compared within the group


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the feed: what a trainer is to do about one subject, from `seq` on."""

    seq: int
    scope: Scope
    action: Action
    cause: Cause | None = None
    trajectory: str | None = None  # the producer's id
    key: str | None = None  # our id of the trajectory
    group: str | None = None
    environment: str | None = None
    version: str | None = None
    task: str | None = None
    run: str | None = None
    state: State | None = None  # with set_state
    sampling_weight: float | None = None
    audit_rate: float | None = None  # with set_state: the share of its groups that is to be posted at least
    rollback: Rollback | None = None  # with advise_rollback
    impact: Impact | None = None  # on the group, where it was decided together
    reward_override: float | None = None
    retry: bool = False
    until: datetime | None = None  # of a hold
    final: bool = False
    author: str = ""  # policy:default@1 or person:NAME
    mode: Mode = Mode.OBSERVE
    enforced: bool = True  # False where the stop at 20 % holds for this run
    reasons: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()  # addresses of the findings
    supersedes: int | None = None  # seq of the decision that this one replaces
    decided_at: datetime | None = None
