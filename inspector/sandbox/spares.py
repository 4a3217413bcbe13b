"""Keeps a few spare boxes of the kinds that are asked for again and again, made by a thread of its own while others run."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from inspector.sandbox.protocol import Broken, Refused
from inspector.sandbox.spare import Kind, Spare

KEPT = 2
IDLE_S = 30.0  # after which a spare that nobody asked for is ended
AGAIN = 2  # boxes of a kind that a spare could have been, before one is made
KINDS = 64  # that are remembered


@dataclass(slots=True)
class Spares:
    """Of one stage, any thread's."""

    make: Callable[[Kind], Spare]
    discard: Callable[[Spare], None]
    waiting: OrderedDict[Kind, tuple[Spare, float]] = field(default_factory=OrderedDict)  # and when it is too old
    used: OrderedDict[Kind, int] = field(default_factory=OrderedDict)
    wanted: OrderedDict[Kind, None] = field(default_factory=OrderedDict)
    changed: threading.Condition = field(default_factory=threading.Condition)
    thread: threading.Thread | None = None
    closed: bool = False
    pid: int = field(default_factory=os.getpid)

    def take(self, kind: Kind) -> Spare | None:
        """A spare of this kind, if one waits."""
        with self.changed:
            spare, _ = self.waiting.pop(kind, (None, 0.0))
        if spare is None or spare.alive:
            return spare
        self._end(spare)
        return None

    def could_be(self, kind: Kind) -> None:
        """A box of this kind runs as a spare could: from the second on, one is made for the next."""
        with self.changed:
            self.used[kind] = self.used.pop(kind, 0) + 1
            if len(self.used) > KINDS:
                self.used.popitem(last=False)
            if self.used[kind] >= AGAIN and kind not in self.waiting:
                self.wanted[kind] = None
                self._start()
                self.changed.notify()

    def could_not_be(self, kind: Kind) -> None:
        """A spare of this kind was of no use."""
        with self.changed:
            self.used.pop(kind, None)

    def _start(self) -> None:
        if self.thread is None and not self.closed:
            self.thread = threading.Thread(target=self._keep, name="spare boxes", daemon=True)
            self.thread.start()

    def _keep(self) -> None:
        while (work := self._next()) is not None:
            kind, old = work
            for spare in old:
                self.could_not_be(spare.kind)
                self._end(spare)
            if kind is not None:
                self._add(kind)

    def _next(self) -> tuple[Kind | None, list[Spare]] | None:
        """What to make and what to end; None once all is over."""
        with self.changed:
            ends = min((until for _, until in self.waiting.values()), default=None)
            self.changed.wait_for(lambda: self.closed or self.wanted, None if ends is None else max(0.0, ends - time.monotonic()))
            if self.closed:
                return None
            kind = next((kind for kind in self.wanted if kind not in self.waiting), None)
            self.wanted.clear() if kind is None else self.wanted.pop(kind)
            full = kind is not None and len(self.waiting) >= KEPT
            old = [name for number, (name, (_, until)) in enumerate(self.waiting.items()) if until <= time.monotonic() or (full and number == 0)]
            return kind, [self.waiting.pop(name)[0] for name in old]

    def _add(self, kind: Kind) -> None:
        try:
            spare = self.make(kind)
        except (Broken, Refused, OSError):  # whoever asks for a box of this kind is told why
            self.could_not_be(kind)
            return
        with self.changed:
            self.waiting[kind] = spare, time.monotonic() + IDLE_S

    def _end(self, spare: Spare) -> None:
        try:
            self.discard(spare)
        except (Broken, OSError):  # what is left of it goes with the stage, or with the next reaper
            return

    def close(self) -> None:
        """End them all, unless we are a fork of who made them."""
        if self.pid != os.getpid():
            return
        with self.changed:
            self.closed = True
            self.changed.notify()
        if self.thread is not None:
            self.thread.join()
        while self.waiting:
            self._end(self.waiting.popitem()[1][0])
