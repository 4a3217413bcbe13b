"""One box: its disk, its limits, and the commands that run in it."""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from inspector.sandbox import files, ground, layers
from inspector.sandbox.cgroups import Group
from inspector.sandbox.files import sayable
from inspector.sandbox.ground import Ground
from inspector.sandbox.launch import Program, Running, arguments, launch, surroundings
from inspector.sandbox.process import Talk
from inspector.sandbox.protocol import Broken, Diff, Ended, Layer, Limits, Refused, Result
from inspector.sandbox.spare import Kind, Spare, order_of
from inspector.sandbox.spares import Spares
from inspector.sandbox.stage import Stage
from inspector.sandbox.streams import complaint, converse, let_go

NOT_FOUND, NOT_RUNNABLE = 127, 126  # as shells say
SIGNALS = frozenset(map(int, signal.valid_signals()))
EXEC_FAILED, NO_FOLDER = b"bwrap: execvp ", b"bwrap: Can't chdir to "


@dataclass(slots=True)
class Plan:
    """What a box was asked to be."""

    kind: Kind
    environment: Mapping[str, str]
    cwd: str
    python: Mapping[str, str]  # how the Python that runs us is called outside -> inside

    @property
    def layers(self) -> Sequence[Path]:
        """What the box stands on, the first lowest."""
        return self.kind.layers

    @property
    def limits(self) -> Limits:
        """Of the box."""
        return self.kind.limits


@dataclass(slots=True)
class BubblewrapBox:
    """A box by bubblewrap. Its files lie in memory, on a disk of their own, and count as memory too. For one thread at a time."""

    here: Stage
    program: Program
    ground: Ground
    plan: Plan
    spare: Spare | None  # made ahead for its first command
    spares: Spares | None  # None where no spare could ever be one like this
    options: list[str] = field(init=False)
    touched: bool = field(init=False, default=False)  # by a command or by files put into it

    def __post_init__(self) -> None:
        self.options = arguments(self.here.root, self.plan.layers, self.disk, self.plan.kind.network, self.plan.limits)

    @property
    def name(self) -> str:
        """That no other box has."""
        return self.ground.name

    @property
    def disk(self) -> Path:
        """Where its files are."""
        return self.ground.disk

    @property
    def group(self) -> Group:
        """Its limits."""
        return self.ground.group

    @property
    def lowers(self) -> list[Path]:
        """What it stands on, the topmost first."""
        return [*reversed(self.plan.layers), self.here.root.folder]

    def run(
        self, argv: Sequence[str], *, timeout_s: float | None = None, stdin: bytes = b"", cwd: str | None = None, environment: Mapping[str, str] | None = None
    ) -> Result:
        """Run a command to its end, and end all that it started. A time limit given here goes before the box's own."""
        variables, where = {**self.plan.environment, **(environment or {})}, cwd or self.plan.cwd
        given = surroundings(variables, where)
        meter = Meter(self.group)
        with ExitStack() as stack:
            order = self._order(argv, variables, where, silent=not stdin)
            talk, running = self._woken(stack, order, stdin) or self._started(stack, given, argv, stdin)
            talk.hold(running.monitor.pidfd, time.monotonic() + (self.plan.limits.wall_s if timeout_s is None else timeout_s), lambda: True)
            code = running.end()
            talk.drain()
            return self._result(running, code, talk, meter)

    def _order(self, argv: Sequence[str], variables: Mapping[str, str], cwd: str, *, silent: bool) -> bytes | None:
        """The command in the words of a spare, where one could be this box."""
        if self.spares is None or self.touched or not argv or not sayable(*argv, cwd):
            return None
        order = order_of(self.command(argv), variables, cwd, silent=silent)
        if order is not None:
            self.spares.could_be(self.plan.kind)
        return order

    def _woken(self, stack: ExitStack, order: bytes | None, stdin: bytes) -> tuple[Talk, Running] | None:
        if self.spare is None or order is None:
            return None
        spare, self.spare, self.touched = self.spare, None, True
        return spare.wake(order, stdin, stack)

    def _started(self, stack: ExitStack, given: list[str], argv: Sequence[str], stdin: bytes) -> tuple[Talk, Running]:
        self._touch()
        talk, streams = converse(stack, stdin, self.plan.limits, self.program.user)
        running = self._launch(self.options + given, self.command(argv), talk, streams)
        stack.callback(running.close)
        return talk, running

    def _touch(self) -> None:
        """From now on it is like no other; what waits in it is ended, since files put under a living box may not be seen there."""
        self.touched = True
        if self.spare is not None and self.spares is not None:
            spare, self.spare = self.spare, None
            self.spares.could_not_be(self.plan.kind)
            spare.end()

    def _launch(self, options: Sequence[str], command: Sequence[str], talk: Talk, streams: dict[int, int]) -> Running:
        try:
            return launch(self.program, options, command, streams, self.group, self.plan.limits, self.name)
        except Broken as error:
            let_go(streams)
            talk.drain()
            raise Broken(f"{error}: {complaint(talk)}") from error
        finally:
            let_go(streams)

    def command(self, argv: Sequence[str]) -> list[str]:
        """The command, with the Python that runs us called as the box calls it."""
        return [self.plan.python.get(word, word) if number == 0 else word for number, word in enumerate(argv)]

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
        self._touch()
        files.write(self.disk / "u", self.lowers, path, data, mode, self.program.user)

    def read(self, path: str, limit: int) -> bytes | None:
        """A regular file's bytes."""
        self._ours(path)
        return files.read([self.disk / "u", *self.lowers], path, limit)

    def _ours(self, path: str) -> None:
        if self.here.root.covers("/" + "/".join(files.parts_of(path))):
            raise Refused(f"{path[:200]!r} is the machine's own, not the box's")

    def alive(self) -> frozenset[int]:
        """As the kernel counts them, whatever they say of themselves."""
        return frozenset(self.group.pids())

    def diff(self) -> Diff:
        """What was changed on the layers; a new folder is named too."""
        return layers.diff(self.disk / "u", self.lowers)

    def snapshot(self) -> Layer:
        """What was changed, copied into the store of layers."""
        return layers.keep(self.disk / "u", self.here.store, owner=self.name.rpartition("-")[0], user=self.program.user, limit=self.plan.limits.disk_bytes)

    def __enter__(self) -> BubblewrapBox:
        return self

    def __exit__(self, *_: object) -> None:
        self._touch()
        ground.clear(self.ground, self.here)


def said(code: int) -> tuple[Ended, int | None]:
    """How a command ended, by what bwrap passes on: a signal comes as shells tell it, and cannot be told from that number."""
    if code < 0 or code - 128 in SIGNALS:
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
