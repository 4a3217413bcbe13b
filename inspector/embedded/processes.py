"""Knows a process by its pid and its start time, and ends it with all that it started."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from inspector.errors import InspectorError

PROC = Path("/proc")
POLL_S = 0.02
HURRIED_S = 1.0  # what is left of a patience once someone asked twice


class CannotStart(InspectorError):
    """The stack, or a part of it, does not come up; the message says what to do."""


class Rung(NamedTuple):
    """One step of a ladder of ever harsher signals, and how long to wait after it."""

    signal: int
    patience_s: float


Ladder = Sequence[Rung]
POLITE: Ladder = (Rung(signal.SIGTERM, 10), Rung(signal.SIGKILL, 5))


class Process(msgspec.Struct, frozen=True):
    """A process that cannot be mistaken for another one that got its pid later."""

    pid: int
    born: int  # clock ticks since the machine started

    @property
    def alive(self) -> bool:
        return born(self.pid) == self.born

    def send(self, number: int) -> None:
        """Signal it, if it is still there."""
        if self.alive:
            _kill(self.pid, number)


def require_proc() -> None:
    """Raise CannotStart where the system has no /proc to tell processes apart by."""
    if not sys.platform.startswith("linux") or not (PROC / "self/stat").exists():
        raise CannotStart(
            "the embedded stack needs Linux with /proc mounted; elsewhere run the parts apart, as compose.yaml does, "
            "and set INSPECTOR_DATABASE_URL and INSPECTOR_REDIS_URL"
        )


def identify(pid: int) -> Process | None:
    """The live process behind a pid."""
    started = born(pid)
    return None if started is None else Process(pid, started)


def born(pid: int) -> int | None:
    """When the process started, in clock ticks since boot; None when it is gone or a zombie."""
    fields = _stat(pid)
    return None if fields is None else int(fields[19])


def session_of(sid: int) -> list[int]:
    """The live processes of one session: a child and whatever it started, wherever those moved their group."""
    pids = [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if (fields := _stat(pid)) is not None and int(fields[3]) == sid]


def end(process: Process, ladder: Ladder, hurry: Callable[[], bool] = lambda: False) -> None:
    """Climb the ladder until the process is gone, then kill what is left of the session that it led.

    Every process of the stack leads a session of its own. Patience shrinks to a second once `hurry()` is true.
    """
    for rung in ladder:
        process.send(rung.signal)
        if wait_gone(process, rung.patience_s, hurry):
            break
    if born(process.pid) is None:  # while a session has members its number is given to nobody else
        for pid in session_of(process.pid):
            _kill(pid, signal.SIGKILL)


def wait_gone(process: Process, patience_s: float, hurry: Callable[[], bool] = lambda: False) -> bool:
    """Whether the process ended within its patience."""
    started = time.monotonic()
    while process.alive:
        waited = time.monotonic() - started
        if waited > patience_s or (waited > HURRIED_S and hurry()):
            return False
        time.sleep(POLL_S)
    return True


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the state on; None for the dead and for zombies."""
    try:
        fields = (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
