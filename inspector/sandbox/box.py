"""One box: its disk, its limits, and the commands that run in it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from inspector.sandbox import files, kernel, layers
from inspector.sandbox.cgroups import Group
from inspector.sandbox.group_pool import GroupPool
from inspector.sandbox.launch import Program, Running, arguments, launch, surroundings
from inspector.sandbox.process import Stream, Talk
from inspector.sandbox.protocol import Broken, Diff, Ended, Layer, Limits, Network, Refused, Result
from inspector.sandbox.root import Root

NOT_FOUND, NOT_RUNNABLE = 127, 126  # as shells say
EXEC_FAILED, NO_FOLDER = b"bwrap: execvp ", b"bwrap: Can't chdir to "


@dataclass(slots=True)
class Plan:
    """What a box was asked to be."""

    layers: Sequence[Path]  # the first lowest
    limits: Limits
    network: Network
    environment: Mapping[str, str]
    cwd: str


@dataclass(slots=True)
class BubblewrapBox:
    """A box by bubblewrap. Its files lie in memory, on a disk of their own, and count as memory too. For one thread at a time."""

    name: str
    program: Program
    root: Root
    store: Path
    disk: Path
    group: Group
    groups: GroupPool
    plan: Plan
    python: Mapping[str, str]  # how the Python that runs us is called outside -> inside
    options: list[str] = field(init=False)

    def __post_init__(self) -> None:
        shared = min(64 << 20, self.plan.limits.memory_bytes)
        self.options = arguments(self.root, self.plan.layers, self.disk, self.plan.network, shared)

    @property
    def lowers(self) -> list[Path]:
        """What it stands on, the topmost first."""
        return [*reversed(self.plan.layers), self.root.folder]

    def run(
        self, argv: Sequence[str], *, timeout_s: float | None = None, stdin: bytes = b"", cwd: str | None = None, environment: Mapping[str, str] | None = None
    ) -> Result:
        """Run a command to its end, and end all that it started. A time limit given here goes before the box's own."""
        options = self.options + surroundings({**self.plan.environment, **(environment or {})}, cwd or self.plan.cwd)
        meter = Meter(self.group)
        with ExitStack() as stack:
            talk, streams = converse(stack, stdin, self.plan.limits, self.program.user)
            running = self._launch(options, self.command(argv), talk, streams)
            stack.callback(running.close)
            talk.hold(running.monitor.pidfd, time.monotonic() + (self.plan.limits.wall_s if timeout_s is None else timeout_s), lambda: True)
            code = running.end()
            talk.drain()
            return self._result(running, code, talk, meter)

    def _launch(self, options: Sequence[str], command: Sequence[str], talk: Talk, streams: dict[int, int]) -> Running:
        try:
            self.group.forgive(self.plan.limits)
            return launch(self.program, options, command, streams, self.group, self.plan.limits, self.name)
        except Broken as error:
            let_go(streams)
            talk.drain()
            raise Broken(f"{error}: {complaint(talk)}") from error
        finally:
            let_go(streams)

    def command(self, argv: Sequence[str]) -> list[str]:
        """The command, with the Python that runs us called as the box calls it."""
        return [self.python.get(word, word) if number == 0 else word for number, word in enumerate(argv)]

    def _result(self, running: Running, code: int, talk: Talk, meter: Meter) -> Result:
        if not running.was_set_up:  # in time, or at all
            raise Broken(f"no box: {complaint(talk)}")
        if code == 1 and talk.stderr.kept.startswith((EXEC_FAILED, NO_FOLDER)):
            missing = talk.stderr.kept.rstrip().endswith(b"No such file or directory") and talk.stderr.kept.startswith(EXEC_FAILED)
            code = NOT_FOUND if missing else NOT_RUNNABLE
        ended, status = said(code)
        return meter.result(talk, ended, status)

    def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Put a file into the box."""
        self._ours(path)
        files.write(self.disk / "u", self.lowers, path, data, mode, self.program.user)

    def read(self, path: str, limit: int) -> bytes | None:
        """A regular file's bytes."""
        self._ours(path)
        return files.read([self.disk / "u", *self.lowers], path, limit)

    def _ours(self, path: str) -> None:
        if self.root.covers("/" + "/".join(files.parts_of(path))):
            raise Refused(f"{path[:200]!r} is the machine's own, not the box's")

    def alive(self) -> frozenset[int]:
        """As the kernel counts them, whatever they say of themselves."""
        return frozenset(self.group.pids())

    def diff(self) -> Diff:
        """What was changed on the layers; a new folder is named too."""
        return layers.diff(self.disk / "u", self.lowers)

    def snapshot(self) -> Layer:
        """What was changed, copied into the store of layers."""
        return layers.keep(self.disk / "u", self.store, owner=self.name.rpartition("-")[0], user=self.program.user, limit=self.plan.limits.disk_bytes)

    def __enter__(self) -> BubblewrapBox:
        return self

    def __exit__(self, *_: object) -> None:
        kernel.unmount(self.disk)
        self.disk.rmdir()
        self.groups.give(self.group)


def make_disk(disk: Path, limits: Limits, user: int) -> None:
    """A file system of its own in memory, with room for so many bytes and files. Raises OSError."""
    disk.mkdir()
    options = f"size={max(1 << 16, limits.disk_bytes)},nr_inodes={max(16, limits.inodes)},uid={user},gid={user},mode=0700"
    kernel.mount("box", disk, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, options)
    for name in ("u", "w"):
        (disk / name).mkdir(mode=0o755)
        os.chown(disk / name, user, user)


def converse(stack: ExitStack, stdin: bytes, limits: Limits, user: int) -> tuple[Talk, dict[int, int]]:
    """A conversation, and the descriptors of its other side, which the caller closes once the child has them."""
    streams: dict[int, int] = {}
    stack.callback(let_go, streams)
    outputs = []
    for number in (1, 2):
        reading, streams[number] = os.pipe()
        os.fchown(streams[number], user, user)  # so that it can be opened by its name too, as /dev/stdout
        stack.callback(os.close, reading)
        os.set_blocking(reading, False)
        outputs.append(reading)
    into = None
    if stdin:
        streams[0], into = os.pipe()
        os.fchown(streams[0], user, user)
        os.set_blocking(into, False)
    else:
        streams[0] = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    talk = Talk(stdin, into, {reading: Stream(limits.output_bytes) for reading in outputs}, limits.flood_bytes)
    stack.callback(talk.hang_up)
    return talk, streams


def let_go(streams: dict[int, int]) -> None:
    """Close the other side of a conversation."""
    while streams:
        os.close(streams.popitem()[1])


def complaint(talk: Talk) -> str:
    """What bwrap said of itself."""
    return bytes(talk.stderr.kept).decode(errors="replace").strip()[:2000]


def said(code: int) -> tuple[Ended, int | None]:
    """How a command ended, by what bwrap passes on: a signal comes as shells tell it, and cannot be told from that number."""
    if code < 0 or code - 128 in signal.valid_signals():
        return Ended.SIGNALLED, None
    return Ended.EXITED, code


class Meter:
    """What one command uses of what its box has used."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.began = time.monotonic()
        self.cpu_s = group.cpu_s()
        self.killed = group.out_of_memory()
        group.forget_peak()

    def result(self, talk: Talk, ended: Ended, code: int | None) -> Result:
        """The result of the command that ends now."""
        if talk.flooded:
            ended = Ended.FLOODED
        elif talk.timed_out:
            ended = Ended.TIMED_OUT
        elif code != 0 and self.group.out_of_memory() > self.killed:
            ended = Ended.OUT_OF_MEMORY
        out, err = talk.outputs.values()
        return Result(
            ended=ended,
            exit_code=code if ended is Ended.EXITED else None,
            stdout=bytes(out.kept),
            stderr=bytes(err.kept),
            dropped_bytes=out.dropped + err.dropped,
            wall_s=time.monotonic() - self.began,
            cpu_s=max(0.0, self.group.cpu_s() - self.cpu_s),
            peak_bytes=self.group.peak_bytes(),
        )
