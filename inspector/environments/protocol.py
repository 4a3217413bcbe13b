"""What an environment under test is: tasks with a prompt, perhaps a reference, and a verifier that grades a submission."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol, TypeAlias

from inspector.errors import InspectorError
from inspector.sandbox.protocol import Layer


class Unreadable(InspectorError):
    """What was handed over as an environment cannot be read; the message names the file, the field and the value."""


class Kind(StrEnum):
    """What a task's submission is made of."""

    TEXT = "text"  # an answer in words, as a model completes it
    CODE = "code"  # a program text that the verifier runs
    STATE = "state"  # the file system that an agent leaves
    ACTIONS = "actions"  # calls that are compared with gold ones


@dataclass(frozen=True, slots=True)
class Text:
    """An answer, or a program."""

    text: str
    absent: bool = False  # no answer could be read from what was said; verifiers that tell that from an empty one are told
    stored: bool = False  # of a reference: the task's own answer, in the form in which it keeps it; `text` says how it reads


@dataclass(frozen=True, slots=True)
class Script:
    """What an agent does in the task's own sandbox: shell text run from the task's initial state; empty does nothing."""

    script: str
    solution: bool = False  # with the task's own solution folder in place, which an agent never sees
    lives_on: bool = False  # what an agent's script leaves running lives on beside a verifier that shares its box; else it ends before the grading


@dataclass(frozen=True, slots=True)
class Final:
    """A state that was left before: layers on top of the task's initial state."""

    layers: tuple[Layer, ...]


Submission: TypeAlias = Text | Script | Final


@dataclass(frozen=True, slots=True)
class Conditions:
    """Under what a submission is graded; the defaults are those of the environment."""

    network: bool | None = None  # None: as the task says
    seed: int = 0  # handed to the verifier as PYTHONHASHSEED, and as it takes one
    timezone: str = "UTC"
    locale: str = "C.UTF-8"
    timeout_s: float | None = None


AS_DECLARED = Conditions()


class Trouble(StrEnum):
    """Why there is no grade."""

    REFUSED = "refused"  # the sandbox cannot give what the task needs
    BROKEN = "broken"  # the sandbox failed
    NOT_BUILT = "not_built"  # the initial state could not be reproduced here
    MALFORMED = "malformed"  # the verifier ended without a reward, or with one that is no finite number
    TIMED_OUT = "timed_out"  # the verifier, at its limit


@dataclass(frozen=True, slots=True)
class Grade:
    """What the verifier said; `reward` is None exactly where `trouble` says why."""

    reward: float | None
    components: dict[str, float] = field(default_factory=dict)
    trouble: Trouble | None = None
    evidence: str = ""  # the end of the verifier's output, foreign text
    submission_evidence: str = ""  # the end of what the submission itself printed, foreign text
    submission_ok: bool | None = None  # whether a script ended with 0; None where there was none
    cpu_s: float = 0.0
    wall_s: float = 0.0


@dataclass(frozen=True, slots=True)
class TaskUnderTest:
    """One task as a probe sees it."""

    id: str
    kind: Kind
    prompt: str
    reference: Submission | None = None
    answers: Sequence[str] = ()  # texts that the task itself names as right, where the reference is a text
    entry_point: str | None = None  # of code: what the verifier calls
    tests: Sequence[str] = ()  # of code: the verifier's own statements, where it is made of some
    notes: Sequence[str] = ()  # what could not be read or is not supported, for people
    paid_at: float = 1.0  # a reward at or above this is success
    floor: float = 0.0  # what doing nothing may earn without being an error
    folder: Path | None = None  # where the task is a folder: it, on this machine
    network: bool = False  # it says that it needs one
    read: bool = True  # False where the task could not be read; the notes say why


class Environment(Protocol):
    """One environment version. Foreign code of it runs only inside a sandbox."""

    @property
    def id(self) -> str: ...

    @property
    def version(self) -> str:
        """sha256 of all that makes it, in hexadecimal."""
        ...

    @property
    def verifier_digest(self) -> str:
        """sha256 of what grades, in hexadecimal."""
        ...

    def tasks(self) -> Sequence[TaskUnderTest]:
        """All of them, in a stable order. Raises Unreadable."""
        ...

    def grade(self, task: TaskUnderTest, submission: Submission, conditions: Conditions = Conditions()) -> Grade:
        """Grade a submission in a fresh sandbox. Never raises for what a verifier or a submission does."""
        ...
