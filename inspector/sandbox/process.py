"""Starts a child process and speaks with it: by descriptors and events alone, without threads and without polling."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from inspector.sandbox.protocol import Broken, Refused

FIRST_SOURCE = 64  # descriptors that a child gets are copied up here first, so that none overwrites another
CHUNK = 1 << 16
END_S = 20.0  # for the kernel to end what was killed
WAIT_S = 86400.0  # at once: poll(2) counts milliseconds in 32 bits


@dataclass(slots=True)
class Child:
    """A process that we started. `close` ends it if it still runs."""

    pid: int
    pidfd: int
    reaped: int | None = None  # what waitid said

    def wait(self, timeout_s: float) -> int | None:
        """Its exit code, negative for a signal; None if it still runs after that time."""
        if self.reaped is None and ready(self.pidfd, timeout_s):
            self.reaped = reap(self.pidfd)
        return self.reaped

    def close(self) -> None:
        """Kill it if it still runs, and forget it. Raises Broken."""
        try:
            if self.reaped is None:
                send(self.pidfd, signal.SIGKILL)
                if self.wait(END_S) is None:
                    raise Broken(f"process {self.pid} does not end")
        finally:
            os.close(self.pidfd)


def start(argv: Sequence[str], descriptors: Mapping[int, int], environment: Mapping[str, str]) -> Child:
    """Start a program that gets these descriptors (its number -> ours) and no other. Raises Broken."""
    copies = {number: fcntl.fcntl(ours, fcntl.F_DUPFD_CLOEXEC, FIRST_SOURCE) for number, ours in descriptors.items()}
    actions: list[tuple[int, int] | tuple[int, int, int]] = [(os.POSIX_SPAWN_CLOSE, number) for number in _inheritable() if number not in copies]
    actions += [(os.POSIX_SPAWN_DUP2, copy, number) for number, copy in copies.items()]
    try:
        pid = os.posix_spawn(argv[0], list(argv), environment, file_actions=actions, setsigmask=(), setsigdef=(signal.SIGPIPE, signal.SIGINT))
        return Child(pid, os.pidfd_open(pid))
    except OSError as error:
        if error.errno == errno.E2BIG:
            raise Refused("the command is longer than the kernel takes") from error
        raise Broken(f"cannot start {os.path.basename(argv[0])}: {error}") from error
    finally:
        for copy in copies.values():
            os.close(copy)


def _inheritable() -> list[int]:
    """Descriptors that a child would get by mistake: foreign libraries do not always close theirs."""
    found = []
    for number in map(int, os.listdir("/proc/self/fd")):
        try:
            if number > 2 and not fcntl.fcntl(number, fcntl.F_GETFD) & fcntl.FD_CLOEXEC:
                found.append(number)
        except OSError:  # the descriptor of the listing itself
            continue
    return found


def ready(descriptor: int, timeout_s: float) -> bool:
    """Wait until it can be read: a pipe has bytes or its end, a process has ended."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(_milliseconds(timeout_s)))


def _milliseconds(timeout_s: float) -> int:
    """As poll(2) takes them, rounded up; no more than a day."""
    return int(min(max(0.0, timeout_s), WAIT_S) * 1000 + 0.999)


def reap(pidfd: int) -> int:
    """The exit code of an ended child, negative for a signal."""
    status = os.waitid(os.P_PIDFD, pidfd, os.WEXITED)
    if status is None:
        raise Broken("a child process was reaped by someone else")
    return status.si_status if status.si_code == os.CLD_EXITED else -status.si_status


def send(pidfd: int, number: int) -> None:
    """A signal, if it still runs."""
    try:
        signal.pidfd_send_signal(pidfd, number)
    except ProcessLookupError:
        return


@dataclass(slots=True)
class Stream:
    """What comes out of one pipe: the first bytes are kept, the rest is counted."""

    keep: int
    kept: bytearray = field(default_factory=bytearray)
    dropped: int = 0

    def add(self, data: bytes) -> None:
        """Keep what fits."""
        room = self.keep - len(self.kept)
        self.kept += data[:room]
        self.dropped += max(0, len(data) - room)

    @property
    def size(self) -> int:
        """Bytes seen."""
        return len(self.kept) + self.dropped


@dataclass(slots=True)
class Talk:
    """One conversation: `stdin` goes in, `outputs` come out, until `ends` can be read, the deadline passes or there is too much."""

    stdin: bytes
    into: int | None  # non-blocking, as the others; None where there is nothing to say
    outputs: dict[int, Stream]
    flood: int
    said: int = 0
    flooded: bool = False
    timed_out: bool = False

    def hold(self, ends: int, deadline: float, ended: Callable[[], bool]) -> None:
        """Speak until the end; `ended` is asked when `ends` becomes readable."""
        poll = select.poll()
        for descriptor in (*self.outputs, ends):
            poll.register(descriptor, select.POLLIN)
        if self.into is not None:
            poll.register(self.into, select.POLLOUT)
        while not self.flooded:
            left = deadline - time.monotonic()
            events = poll.poll(_milliseconds(left))
            if left <= 0:
                self.timed_out = True
                return
            if self._serve(poll, events, ends) and ended():
                return

    def _serve(self, poll: select.poll, events: list[tuple[int, int]], ends: int) -> bool:
        over = False
        for descriptor, _ in events:
            if descriptor == ends:
                over = True
            elif descriptor == self.into:
                if not self._say(descriptor):
                    poll.unregister(descriptor)
                    self.hang_up()
            elif not self._hear(descriptor):
                poll.unregister(descriptor)
        return over

    def _say(self, descriptor: int) -> bool:
        try:
            self.said += os.write(descriptor, self.stdin[self.said : self.said + CHUNK])
        except BlockingIOError:
            return True
        except BrokenPipeError:  # it does not want to hear more
            return False
        return self.said < len(self.stdin)

    def _hear(self, descriptor: int) -> bool:
        try:
            data = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return True
        self.outputs[descriptor].add(data)
        self.flooded = sum(stream.size for stream in self.outputs.values()) >= self.flood
        return bool(data)

    def drain(self) -> None:
        """Take what is left in the pipes once nobody writes any more, or no more than a pipe holds."""
        for descriptor in self.outputs:
            for _ in range(16):  # 1 MiB, the most that a pipe holds
                if not ready(descriptor, 0) or not self._hear(descriptor):
                    break

    @property
    def stderr(self) -> Stream:
        """What came out second."""
        return list(self.outputs.values())[1]

    def hang_up(self) -> None:
        """Close our end of its stdin."""
        if self.into is not None:
            os.close(self.into)
            self.into = None
