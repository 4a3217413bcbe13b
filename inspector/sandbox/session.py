"""A box that stays: one bwrap, many commands, and what they left running between them."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files as resources
from typing import TypeVar

from inspector.sandbox.box import BubblewrapBox, Meter, said
from inspector.sandbox.files import sayable
from inspector.sandbox.launch import SETUP_S, Running, launch, surroundings
from inspector.sandbox.process import Talk, ready
from inspector.sandbox.protocol import Broken, Diff, Ended, Layer, Refused, Result
from inspector.sandbox.streams import converse, let_go

T = TypeVar("T")
ANSWER_BYTES = 4096
OBEY_S = 2.0  # for the agent to end a command
WRITE = 'set -e; mkdir -p -- "$(dirname -- "$1")"; rm -f -- "$1"; cat >"$1"; chmod "$2" "$1"'
OVER = b"the session was ended by what ran in it\n"


@dataclass(slots=True)
class Session(BubblewrapBox):
    """A box whose processes live on between commands. It starts with its first command, and is over when what runs in it ends it.

    What was left running may lie about later commands too, so a verifier is run in a box of its own.
    """

    running: Running | None = None
    control: socket.socket | None = None
    heard: bytes = b""
    errors: int = -1  # what bwrap says of itself
    stack: ExitStack = field(default_factory=ExitStack)

    def run(
        self, argv: Sequence[str], *, timeout_s: float | None = None, stdin: bytes = b"", cwd: str | None = None, environment: Mapping[str, str] | None = None
    ) -> Result:
        """Run a command to its end; what it started in the background lives on, unless it is stopped: then its group goes with it."""
        variables = {**self.plan.environment, **(environment or {})}
        surroundings(variables, "/")
        order = json.dumps({"argv": self.command(argv), "cwd": cwd or self.plan.cwd, "environment": variables}).encode()
        if not argv or not sayable(*argv, cwd or ""):
            raise Refused("a command has at least a name, and nothing in it that is no text")
        control, meter = self._begun(), Meter(self.group)
        with ExitStack() as stack:
            talk, streams = converse(stack, stdin, self.plan.limits, self.program.user)
            self._send(control, order, streams)
            let_go(streams)
            deadline = time.monotonic() + (self.plan.limits.wall_s if timeout_s is None else timeout_s)
            talk.hold(control.fileno(), deadline, self._heard)
            if talk.timed_out or talk.flooded:
                self._stop(control)
            talk.drain()
            return self._answered(meter, talk)

    def _send(self, control: socket.socket, order: bytes, streams: Mapping[int, int]) -> None:
        try:
            control.settimeout(SETUP_S)
            socket.send_fds(control, [len(order).to_bytes(4, "big")], [streams[number] for number in range(3)])
            control.sendall(order)
        except OSError:  # nobody listens any more, and the end will be read from the same socket
            return

    def _heard(self) -> bool:
        """Take what the agent says; whether that is an answer, or its end."""
        if self.control is None:
            return True
        try:
            more = self.control.recv(ANSWER_BYTES)
        except OSError:
            more = b""
        self.heard += more
        return not more or b"\n" in self.heard or len(self.heard) > ANSWER_BYTES

    def _stop(self, control: socket.socket) -> None:
        """End the command; where the agent does not obey, the box."""
        self._send_bare(control)
        deadline = time.monotonic() + OBEY_S
        while b"\n" not in self.heard:
            if not ready(control.fileno(), deadline - time.monotonic()) or self._heard():
                break
        if b"\n" not in self.heard and self.running is not None:
            self.running.end()

    def _send_bare(self, control: socket.socket) -> None:
        try:
            control.sendall((2).to_bytes(4, "big") + b"{}")
        except OSError:
            return

    def _answered(self, meter: Meter, talk: Talk) -> Result:
        line, found, self.heard = self.heard.partition(b"\n")
        code = _exit_of(line) if found else None
        if code is None:
            self.heard = b""
            self._shut()
            talk.stderr.add(OVER)
            return meter.result(talk, Ended.SIGNALLED, None)
        ended, status = (Ended.EXITED, code) if code >= 0 else said(code)
        return meter.result(talk, ended, status)

    def _shut(self) -> None:
        """It is over; the socket stays, closed at its other side, so that later commands find the same end."""
        if self.running is not None:
            self.running.end()

    def _begun(self) -> socket.socket:
        if self.control is None:
            ours, theirs = socket.socketpair()
            self.stack.callback(ours.close)
            with theirs:
                self._start(theirs.fileno())
            self.control = ours
            self._greeted(ours)
        return self.control

    def _start(self, control: int) -> None:
        options = self.options + surroundings(self.plan.environment, "/")
        command = [self.here.root.python, "-I", "-S", "-c", (resources("inspector.sandbox") / "agent.py").read_text()]
        quiet = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        errors = os.memfd_create("box", os.MFD_CLOEXEC)
        self.stack.callback(os.close, errors)
        try:
            streams = {0: quiet, 1: quiet, 2: errors, 3: control}
            self.running = in_a_thread_that_stays(lambda: launch(self.program, options, command, streams, self.group, self.plan.limits, self.name))
            self.stack.callback(self.running.close)
        except Broken as error:
            raise Broken(f"{error}: {_text(errors)}") from error
        finally:
            os.close(quiet)
        self.errors = errors

    def _greeted(self, control: socket.socket) -> None:
        if not ready(control.fileno(), SETUP_S) or control.recv(1) != b"\n":
            raise Broken(f"no session: {_text(self.errors)}")

    def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Put a file into the box; once it runs, by a command in it, since files that are put under a living box may not be seen there."""
        if self.control is None:
            BubblewrapBox.write(self, path, data, mode=mode)
            return
        self._ours(path)
        result = self.run(["/usr/bin/sh", "-c", WRITE, "sh", path, f"{mode & 0o777:o}"], stdin=data, cwd="/")
        if not result.ok:
            raise Refused(f"{path[:200]!r} cannot be written: {result.stderr.decode(errors='replace').strip()[:500]}")

    def diff(self) -> Diff:
        """What was changed so far; nothing runs meanwhile."""
        with self._still():
            return BubblewrapBox.diff(self)

    def snapshot(self) -> Layer:
        """What was changed so far, as a layer; nothing runs meanwhile."""
        with self._still():
            return BubblewrapBox.snapshot(self)

    @contextmanager
    def _still(self) -> Iterator[None]:
        try:
            self.group.freeze()
            yield
        finally:
            self.group.thaw()

    def __exit__(self, *_: object) -> None:
        self.stack.close()
        BubblewrapBox.__exit__(self)


def _exit_of(line: bytes) -> int | None:
    """The exit code in an answer; None where what ran in the box answers nonsense in the agent's place."""
    try:
        code = json.loads(line)["exit"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return code if isinstance(code, int) and -64 <= code <= 255 else None


def _text(descriptor: int) -> str:
    return os.pread(descriptor, 2000, 0).decode(errors="replace").strip()


def in_a_thread_that_stays(work: Callable[[], T]) -> T:
    """A box dies with the thread that started it, so a session is started by one that lives as long as we do."""
    return _thread(os.getpid()).submit(work).result()


_lock = threading.Lock()
os.register_at_fork(after_in_child=lambda: globals().update(_lock=threading.Lock()))  # a fork has nobody who could let go of it


def _thread(pid: int) -> ThreadPoolExecutor:
    with _lock:
        return _made(pid)


@cache
def _made(pid: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix=f"boxes of {pid}")
