"""What requests and answers about probes look like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from inspector.api.wire import Request, RolloutsLine
from inspector.assignments import MOST_TASKS, Face
from inspector.store.probes import ProbeState
from inspector.trajectory import NO_CONTROLS, Identifier

Inside = Annotated[str, msgspec.Meta(min_length=1, max_length=500, pattern=NO_CONTROLS)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=1e9)]
Sha256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]


class PackageRequest(Request, frozen=True, kw_only=True):
    """What a version is made of: an uploaded tar, or the name of what lies elsewhere, and how it is opened."""

    artifact: Sha256 | None = None  # left out where the face is reasoning_gym, and where it is verifiers and the environment is installed
    face: Face = "auto"
    entry: Inside | None = None  # what is opened inside the tar; left out: all that is in it. Of a named face the data set, the environment, the address
    dataset: Inside | None = None  # a file inside the tar


class PackageAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A package as it is known."""

    environment: str
    version: str
    artifact: str | None
    face: str
    entry: str | None
    dataset: str | None
    content_version: str | None  # None until a worker has read it
    verifier_digest: str | None
    put_at: datetime


class BudgetOfProbe(Request, frozen=True, kw_only=True):
    """Seconds that all tasks of a probe may take together."""

    cpu_s: Seconds | None = None
    wall_s: Seconds | None = None


class ProbeRequest(Request, frozen=True, kw_only=True):
    """How much is to be run, of which tasks, how soon, at what cost."""

    depth: Literal["quick", "full"] = "quick"
    tasks: Annotated[list[Identifier], msgspec.Meta(min_length=1, max_length=MOST_TASKS)] | None = None  # left out: all
    budget: BudgetOfProbe = BudgetOfProbe()
    priority: Literal["live", "probe", "backfill"] = "probe"


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds that the tasks took so far."""

    cpu_s: float
    wall_s: float


class ProbeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A probe as it stands."""

    id: UUID
    environment: str
    version: str
    state: ProbeState
    depth: str
    tasks: Sequence[str] | None
    priority: str
    done: int
    total: int | None  # None until the tasks were listed
    outcomes: dict[str, int]  # how many tasks have each; a task may have several
    budget: BudgetOfProbe
    spent: Spent
    note: str
    asked_at: datetime
    began_at: datetime | None
    ended_at: datetime | None


class ProbeLine(msgspec.Struct, frozen=True, kw_only=True):
    """A probe of a list."""

    id: UUID
    environment: str
    version: str
    state: ProbeState
    priority: str
    done: int
    total: int | None
    asked_at: datetime
    ended_at: datetime | None


class ProbePage(msgspec.Struct, frozen=True, kw_only=True):
    """One page, newest first."""

    probes: list[ProbeLine]
    next: str | None


class ProbedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task of a probe; `report` is what a probe on the command line says of it."""

    task: str
    state: Literal["waiting", "running", "done"]
    outcomes: Sequence[str] | None
    report: msgspec.Raw | None


class ProbedTaskPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page, in the order of the version's tasks."""

    tasks: list[ProbedTask]
    next: str | None


class ScoreLine(msgspec.Struct, frozen=True, kw_only=True):
    """What was last said of a task."""

    task: str
    outcomes: Sequence[str]
    probe: UUID
    probed_at: datetime
    rollouts: RolloutsLine | None  # None where this project posted no scored ones


class Scorecard(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a version from its probes."""

    environment: str
    version: str
    content_version: str | None
    verifier_digest: str | None
    probed: int  # tasks
    counts: Mapping[str, int]  # how many of them have each outcome
    probed_at: datetime | None  # the last of them
    hints: msgspec.Raw  # of the lint; for the project that registered the version
    tasks: list[ScoreLine]  # worst first
    next: str | None
