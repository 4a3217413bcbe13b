"""What a sandbox is: boxes on immutable layers, commands with limits, and a result that tells a broken box from a failed command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Protocol

from inspector.errors import InspectorError


class Refused(InspectorError):
    """This backend or this machine cannot give what was asked for; nothing was run, and nothing weaker is offered."""


class Broken(InspectorError):
    """The sandbox failed, not what ran in it: no task and no submission is to be judged by it."""


class Network(StrEnum):
    """What a box may reach."""

    OFF = "off"
    ON = "on"  # the machine's own network, where the operator allows it


class Layer(NamedTuple):
    """A directory that nobody changes any more; `id` is the hash of its content, or names a root of the host."""

    id: str
    path: Path


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one box; a command that reaches one is ended, and its result says which."""

    wall_s: float = 60.0
    cpus: float = 1.0
    memory_bytes: int = 1 << 30
    pids: int = 256
    disk_bytes: int = 1 << 30
    inodes: int = 100_000
    output_bytes: int = 1 << 20  # kept of stdout and of stderr, each; the rest is counted
    flood_bytes: int = 64 << 20  # of output, at which the command is ended


class Ended(StrEnum):
    """How a command ended."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    FLOODED = "flooded"


@dataclass(frozen=True, slots=True)
class Result:
    """What a command did."""

    ended: Ended
    exit_code: int | None  # None unless it exited
    stdout: bytes
    stderr: bytes
    dropped_bytes: int  # of output beyond what is kept
    wall_s: float
    cpu_s: float
    peak_bytes: int | None  # of memory; None where the machine cannot tell

    @property
    def ok(self) -> bool:
        """It exited with 0."""
        return self.ended is Ended.EXITED and self.exit_code == 0


class Changed(StrEnum):
    """What became of a path."""

    WRITTEN = "written"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Diff:
    """What a box changed on its layers; paths are absolute inside the box."""

    changes: Mapping[str, Changed] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend can do on this machine; what it lacks is said in `missing`."""

    name: str
    snapshot: bool
    network: frozenset[Network]
    root: bool  # whether "root" inside may do what root may
    services: bool  # whether processes live on between two commands
    missing: Mapping[str, str] = field(default_factory=dict)  # what -> why, for people


class Box(Protocol):
    """One sandbox. Use as a context manager; its end leaves no process, mount, cgroup or file behind."""

    def run(
        self, argv: Sequence[str], *, timeout_s: float | None = None, stdin: bytes = b"", cwd: str | None = None, environment: Mapping[str, str] | None = None
    ) -> Result:
        """Run a command to its end; all that it started ends with it, unless this box is a session. Raises Broken."""
        ...

    def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Put a file into the box; folders are made. Raises Refused where the path leaves the box."""
        ...

    def read(self, path: str, limit: int) -> bytes | None:
        """A regular file's bytes, None where there is none; links are not followed. Raises Refused where it is longer than `limit` bytes."""
        ...

    def alive(self) -> frozenset[int]:
        """The machine's numbers of the processes that live in the box now. Raises Refused where the backend cannot tell."""
        ...

    def diff(self) -> Diff:
        """What was changed on the layers."""
        ...

    def snapshot(self) -> Layer:
        """What was changed, as a layer that later boxes may stand on. Raises Refused where it cannot be kept whole."""
        ...

    def __enter__(self) -> Box: ...

    def __exit__(self, *_: object) -> None: ...


class Backend(Protocol):
    """Makes boxes."""

    @property
    def capabilities(self) -> Capabilities:
        """Found out once, by trying."""
        ...

    def create(
        self,
        layers: Sequence[Layer] = (),
        *,
        limits: Limits = Limits(),
        network: Network = Network.OFF,
        environment: Mapping[str, str] | None = None,
        cwd: str = "/",
        session: bool = False,
    ) -> Box:
        """A box on these layers, the first lowest, above the backend's own root. Raises Refused and Broken."""
        ...
