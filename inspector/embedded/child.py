"""Runs one child process: starts it, starts it again when it dies, and stops it with all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from inspector.embedded import logs
from inspector.embedded.processes import POLITE, Ladder, Process, end, identify

LAUNCH = Path(__file__).with_name("launch.py")
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 10.0
ENDED_S = 60.0  # for a start that was under way when it was stopped
STEADY_S = 30.0  # a child that ran so long is forgiven its earlier deaths


class User(msgspec.Struct, frozen=True):
    """Whom a child runs as."""

    uid: int
    gid: int

    def __str__(self) -> str:
        return f"{self.uid}:{self.gid}"


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """What a child is: its command, all of its environment, and how it is asked to stop."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    folder: Path = Path("/")
    user: User | None = None  # None: whoever we are
    open_files: Sequence[int] = ()  # descriptors that it inherits under the same number
    death_signal: int = signal.SIGTERM  # sent by the kernel when we die, however we die
    ladder: Ladder = POLITE


def launched(command: Sequence[str], *, user: User | None = None, death_signal: int = signal.SIGKILL) -> list[str]:
    """The command behind our launcher, which makes it die with this process and run as `user`."""
    return [sys.executable, "-I", "-S", str(LAUNCH), str(os.getpid()), str(int(death_signal)), str(user or "-"), *map(str, command)]


class Child:
    """One program kept running. A thread of its own starts it and waits for it.

    The kernel sends the parent death signal when the *thread* that forked ends, so that thread stays until the child is gone.
    """

    def __init__(self, program: Program, log: Path, *, say: Callable[[str], None], changed: Callable[[], None] = lambda: None) -> None:
        self.program = program
        self.log = log
        self.process: Process | None = None  # None: not running now
        self.status: int | None = None  # of its last end
        self.starts = 0
        self._say = say
        self._changed = changed  # called after every start
        self._stopping = threading.Event()
        self._started = threading.Event()
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._run, name=f"child {program.name}", daemon=True)

    def start(self) -> None:
        """Start it for the first time; raises OSError when there is no such program."""
        logs.turn_over(self.log)
        self._thread.start()
        self._started.wait()
        if self._error:
            raise self._error

    def stop(self, hurry: Callable[[], bool] = lambda: False) -> None:
        """End it and its whole session, and start it no more."""
        self._stopping.set()
        if self.process:
            end(self.process, self.program.ladder, hurry)
        if self._thread.is_alive():
            self._thread.join(ENDED_S)

    @property
    def how_it_ended(self) -> str:
        """Its last end in words."""
        if self.status is None:
            return "has not ended"
        if self.status < 0:
            return f"was ended by {signal.Signals(-self.status).name}"
        return f"ended with status {self.status}"

    def _run(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._stopping.is_set():
            running_s, ending = self._run_once()
            if self._stopping.is_set() or not self.starts:
                return
            pause_s = FIRST_PAUSE_S if running_s > STEADY_S else pause_s
            self._say(f"{self.program.name} {ending} after {running_s:.1f} s; starting it again in {pause_s:.1f} s (its log: {self.log})")
            self._stopping.wait(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _run_once(self) -> tuple[float, str]:
        """Its life from start to end: for how long, in seconds, and how it ended."""
        began = time.monotonic()
        try:
            popen = self._spawn()
        except OSError as error:
            self._error = error
            self._started.set()
            return 0.0, f"could not be started ({error})"
        self._live(popen)
        return time.monotonic() - began, self.how_it_ended

    def _live(self, popen: subprocess.Popen[bytes]) -> None:
        process = identify(popen.pid)
        self.process, self.status = process, None
        self.starts += 1
        self._changed()
        self._started.set()
        if self._stopping.is_set() and process:  # stop() looked before there was anything to end
            end(process, self.program.ladder)
        status = popen.wait()
        self.process, self.status = None, status
        if process:
            end(process, ())  # what it started must not outlive it

    def _spawn(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                launched(self.program.command, user=self.program.user, death_signal=self.program.death_signal),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(self.program.environment),
                cwd=self.program.folder,
                pass_fds=self.program.open_files,
                start_new_session=True,
            )
