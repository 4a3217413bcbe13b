"""Ctrl-C and SIGTERM as one exception of the main thread, and an end to the boxes that other threads wait for."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
TWICE_S = 1.0  # within which a second signal is the first one told twice, as `timeout` and terminals do
ROUND_S = 0.05


class Interrupted(BaseException):
    """Not an Exception: nobody on the way may take it for a failure of what they do."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = signal.Signals(number).name
        self.code = 128 + number  # as shells say it


@contextmanager
def interruptible() -> Iterator[Event]:
    """Within, a signal raises Interrupted in the main thread, sets the event and ends all boxes, also those that are made after it.

    A signal that is ignored, as in the background of a shell, stays so. For the main thread.
    """
    stopped, over = Event(), Event()
    ending = Thread(target=_end_boxes, args=(stopped, over), name="ending", daemon=True)
    ending.start()  # now: a signal's handler may start no thread
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in (number for number, handler in before.items() if handler is not signal.SIG_IGN):
        signal.signal(number, _Handler(stopped))
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        over.set()
        stopped.set()
        ending.join()


class _Handler:
    """Of all signals of one command."""

    def __init__(self, stopped: Event) -> None:
        self.stopped = stopped
        self.at = 0.0

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        if self.stopped.is_set() and time.monotonic() - self.at < TWICE_S:
            return
        self.at = time.monotonic()
        self.stopped.set()
        raise Interrupted(number)


def _end_boxes(stopped: Event, over: Event) -> None:
    """Again and again, since a verifier that lost one box may ask for its next."""
    stopped.wait()
    while not over.wait(ROUND_S):
        for child in _children():
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


def _children() -> Iterator[int]:
    """Of this process: each holds a box, which goes with it. They are ours to bury, so that no other process has their numbers."""
    ours = str(os.getpid())
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # gone meanwhile
            state, parent, *_ = (folder / "stat").read_bytes().rpartition(b")")[2].decode().split()
            if parent == ours and state != "Z":
                yield int(folder.name)
