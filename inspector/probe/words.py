"""What a probe says: outcomes of a task with their evidence, and of an environment version as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from inspector.environments.protocol import Trouble


class Outcome(StrEnum):
    """Of one task under one version; several may hold at once, but for `sound`, which stands alone."""

    SOUND = "sound"
    UNSOLVABLE = "unsolvable"
    TRIVIALLY_PASSABLE = "trivially_passable"
    EXPLOITABLE = "exploitable"
    WEAK_VERIFIER = "weak_verifier"
    FALSE_REJECTING = "false_rejecting"
    FLAKY = "flaky"
    NOT_REPRODUCED = "not_reproduced"
    INCONCLUSIVE = "inconclusive"
    NOT_ASSESSED = "not_assessed"


class Family(StrEnum):
    """What a probe is for; the ladder climbs them in this order."""

    LINT = "lint"
    REFERENCE = "reference"
    NOTHING = "nothing"  # no-op, empty, junk, echo, refusal, all answers at once
    WRONG = "wrong"  # wrong in perfect format, right then retracted, hollow, mutants of the reference
    VARIATION = "variation"  # harmless changes of the right answer
    MALFORMED = "malformed"  # input that a verifier must refuse without falling over
    EXPLOIT = "exploit"
    TWIN = "twin"  # the task with one contradiction, which nothing may pass
    REPEAT = "repeat"  # the reference again
    ROLLOUT = "rollout"  # of an agent


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One graded submission."""

    probe: str  # as `exploit/always_equal`
    family: Family
    reward: float | None
    paid: bool
    trouble: Trouble | None = None
    detail: str = ""  # the end of what verifier and submission printed, foreign text
    cpu_s: float = 0.0
    wall_s: float = 0.0


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Why an outcome holds."""

    outcome: Outcome
    probe: str
    claim: str  # one sentence
    proof: str  # what was submitted, or the differing values, foreign text
    detail: str = ""  # the end of what was printed, foreign text
    also: Sequence[str] = ()  # other probes with the same root cause
    reproduce: str = ""  # a command


class Hint(msgspec.Struct, frozen=True, kw_only=True):
    """What the lint saw, with what the probe that tests it found: no accusation by itself."""

    rule: str
    path: str
    line: int
    message: str
    tested_by: str | None = None  # a probe
    confirmed: bool | None = None  # None where no probe could test it here


class TaskReport(msgspec.Struct, frozen=True, kw_only=True):
    """Of one task."""

    task: str
    outcomes: Sequence[Outcome]
    probabilities: dict[str, float] = {}  # outcome -> posterior mean, where there is one
    evidence: Sequence[Evidence] = ()
    hints: Sequence[Hint] = ()
    notes: Sequence[str] = ()  # what could not be told, and the smallest effect that would have been seen
    runs: Sequence[Run] = ()
    cpu_s: float = 0.0
    wall_s: float = 0.0
    reproduce: str = ""


class EnvironmentReport(msgspec.Struct, frozen=True, kw_only=True):
    """Of the whole version."""

    environment: str
    version: str
    verifier_digest: str
    tasks: Sequence[TaskReport]
    notes: Sequence[str] = ()  # as that every task failed alike, so that our own set-up is the first suspect
    hints: Sequence[Hint] = ()
    cpu_s: float = 0.0
    wall_s: float = 0.0

    def counts(self) -> dict[Outcome, int]:
        """How many tasks have each outcome."""
        return {outcome: found for outcome in Outcome if (found := sum(outcome in task.outcomes for task in self.tasks))}
