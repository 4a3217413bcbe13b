"""A box made ahead: never used before, its layers in place and its limits on, it waits for the one command of whoever asks for a box of its kind."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from inspector.sandbox import ground
from inspector.sandbox.ground import Ground, break_ground
from inspector.sandbox.launch import SETUP_S, Program, Running, arguments, launch
from inspector.sandbox.process import Talk, ready
from inspector.sandbox.protocol import Broken, Limits, Network
from inspector.sandbox.stage import Stage
from inspector.sandbox.streams import complaint, converse, let_go, pipe_for_later, write_to

CALL, ORDER = 3, 8  # descriptors of what waits: by one it is woken, in the other it then finds its command
WAITING = ["/usr/bin/sh", "-c", f"echo; read call <&{CALL}; . /dev/fd/{ORDER}"]  # the machine's own, whatever the layers hold
ORDER_BYTES = 100_000  # within what the kernel takes as one command


class Kind(NamedTuple):
    """What two boxes have in common when one can be made ahead for the other."""

    layers: tuple[Path, ...]
    made: tuple[int, ...]  # when they were, in ns: one that took the name of another is another
    limits: Limits
    network: Network

    @classmethod
    def of(cls, layers: Sequence[Path], limits: Limits, network: Network) -> Kind:
        """As the layers are now. Raises OSError."""
        return cls(tuple(layers), tuple(layer.stat().st_ctime_ns for layer in layers), limits, network)


@dataclass(slots=True)
class Spare:
    """A box that waits, to be used once."""

    kind: Kind
    ground: Ground
    running: Running
    talk: Talk
    stdin: int
    call: int
    order: int
    held: ExitStack

    @property
    def alive(self) -> bool:
        """Whether it still waits."""
        return self.running.monitor.wait(0) is None

    def wake(self, order: bytes, stdin: bytes, stack: ExitStack) -> tuple[Talk, Running]:
        """Have it run a command; it is let go of with this stack. Raises Broken."""
        stack.push(self.held.pop_all())
        if stdin:
            self.talk.stdin, self.talk.into = stdin, write_to(self.stdin)
        os.pwrite(self.order, order, 0)
        try:
            os.write(self.call, b"\n")
        except BrokenPipeError as error:
            raise Broken("a box that waited for its command is gone") from error
        return self.talk, self.running

    def end(self) -> None:
        """End it unused; what it stands on is still there. Raises Broken."""
        with self.held:
            self.running.end()


def prepare(here: Stage, program: Program, kind: Kind) -> Spare:
    """A box of this kind that waits. It dies with the thread that prepares it. Raises Broken and Refused."""
    place = break_ground(here, kind.limits, program.user)
    options = [*arguments(here.root, kind.layers, place.disk, kind.network, kind.limits), "--chdir", "/"]
    with ExitStack() as stack:
        unused = stack.enter_context(ExitStack())
        unused.callback(ground.clear, place, here)
        talk, streams = converse(stack, b"", kind.limits, program.user)
        os.close(streams[0])
        streams[0], stdin = pipe_for_later(stack, program.user)
        streams[CALL], call = os.pipe()
        stack.callback(os.close, call)
        order = streams[ORDER] = os.memfd_create("box", os.MFD_CLOEXEC)
        running = launch(program, options, WAITING, streams, place.group, kind.limits, place.name)
        stack.callback(running.close)
        stack.callback(os.close, streams.pop(ORDER))
        let_go(streams)
        _greeted(talk)
        unused.pop_all()
        return Spare(kind, place, running, talk, stdin, call, order, stack.pop_all())


def _greeted(talk: Talk) -> None:
    output = next(iter(talk.outputs))
    if not ready(output, SETUP_S) or os.read(output, 1) != b"\n":
        talk.drain()
        raise Broken(f"no box: {complaint(talk)}")


def order_of(argv: Sequence[str], variables: Mapping[str, str], cwd: str, *, silent: bool) -> bytes | None:
    """A command in the words that a spare understands as they are meant; None where it may not.

    The same as bwrap would do: nothing of the shell that waited is left, neither a descriptor nor a variable.
    """
    if not cwd.startswith("/") or "=" in argv[0]:
        return None
    given = [f"{name}={value}" for name, value in {**variables, "PWD": cwd}.items()]
    quiet = " </dev/null" if silent else ""
    text = f"exec {CALL}<&- {ORDER}<&-{quiet}\ncd -P {shlex.quote(cwd)} || exit 126\nexec /usr/bin/env -i -- {shlex.join([*given, *argv])}\n"
    return text.encode() if text.isascii() and len(text) <= ORDER_BYTES else None
