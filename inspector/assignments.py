"""What the service and a sandbox worker say to each other about the work of probes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from inspector.probe.words import Hint, TaskReport
from inspector.trajectory import Identifier, Number

MOST_TASKS = 20_000
MOST_HINTS = 1000
Face = Literal["auto", "harbor", "rows", "function", "gold_actions", "reasoning_gym", "verifiers", "http_verifier"]
NAMED = {"reasoning_gym": "reasoning-gym:", "verifiers": "verifiers:"}  # what is named rather than uploaded, by its face: as a command line calls it


def handed_over(face: str, entry: str | None) -> str:
    """What a probe on a command line is given, beside the folder that was packed."""
    return NAMED.get(face, "") + entry if entry else "PATH"


class PackageOfWork(msgspec.Struct, frozen=True, kw_only=True):
    """A tar that holds an environment version, or its name, and how it is opened."""

    sha256: str | None  # None where `entry` names what is installed beside the worker
    face: str
    entry: str | None = None
    dataset: str | None = None


class Regrade(msgspec.Struct, frozen=True, kw_only=True):
    """A final state that is to be graded."""

    state: str  # sha256 of the artifact
    times: int


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """A work that was leased: to list the tasks of a version, to probe one of them, or to grade a state that was left in one."""

    work: int
    lease: int
    lease_s: float
    probe: UUID | None  # None: a replay
    environment: str
    version: str
    depth: str
    task: str | None  # None: the listing
    package: PackageOfWork
    replay: Regrade | None = None


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """What a package holds."""

    content_version: Annotated[str, msgspec.Meta(max_length=200)]
    verifier_digest: Annotated[str, msgspec.Meta(max_length=200)]
    tasks: Annotated[Sequence[Identifier], msgspec.Meta(max_length=MOST_TASKS)]
    one_verifier: bool = False  # for all tasks: then they fail alike by nature
    notes: Annotated[Sequence[str], msgspec.Meta(max_length=100)] = ()
    hints: Annotated[Sequence[Hint], msgspec.Meta(max_length=MOST_HINTS)] = ()  # of the lint


class WorkReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What became of a work: exactly one of these."""

    listing: Listing | None = None
    task: TaskReport | None = None
    failure: Annotated[str, msgspec.Meta(max_length=10_000)] | None = None  # why neither could be made


class ReplayReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What came of grading a state again."""

    rewards: Annotated[Sequence[Number], msgspec.Meta(max_length=100)] = ()
    failure: Annotated[str, msgspec.Meta(max_length=10_000)] | None = None  # why there are not as many as were asked for


class WorkState(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a lease or a report."""

    work: int
    state: str  # of the probe; of a replay, whether it is open or closed
