"""The bodies that wait for the service, in order: in memory while it answers, on disk while it is away."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

from inspector.client.batches import Batch
from inspector.client.spool import Spool
from inspector.client.stats import Counters


class Outbox:
    """One thread puts, another sends, in the order of the bodies' numbers.

    While the service is away, everything goes to disk; once it is back, what is new stays in memory again, behind what is
    on disk. When neither has room, what comes now is dropped and counted, and the oldest, which nobody has judged, is kept.
    """

    def __init__(self, spool: Spool | None, counters: Counters, *, max_bytes: int, ring: Callable[[], None]) -> None:
        self._spool, self._counters, self._max_bytes, self._ring = spool, counters, max_bytes, ring
        self._lock = threading.Lock()  # of the fields below; never held during I/O
        self._memory: deque[Batch] = deque()
        self._bytes = 0
        self._spooling = False
        self._settled = threading.Condition()
        self._settled_lines = 0  # that are acknowledged, refused, dropped, or safe on disk

    @property
    def queued_bytes(self) -> int:
        return self._bytes

    @property
    def spool_bytes(self) -> int:
        return self._spool.bytes if self._spool else 0

    @property
    def settled_lines(self) -> int:
        """How many of the lines that ever came here need memory no more."""
        return self._settled_lines

    def put(self, batch: Batch) -> None:
        """Take a body; in memory where possible, else on disk, else not at all, which is counted."""
        with self._lock:
            room = not self._spooling and self._bytes + len(batch.body) <= self._max_bytes
            if room:
                self._memory.append(batch)
                self._bytes += len(batch.body)
        if not room:
            self.spill()
            self._spool_or_drop(batch)
        self._ring()

    def adopt(self) -> None:
        """Put what earlier processes left before everything new."""
        if self._spool is None or not (found := self._spool.adopt()):
            return
        self._counters.add("adopted", found)
        self.spill()
        self._ring()

    def spill(self) -> None:
        """Move what is in memory to disk, if all of it fits; until the service is back, everything new goes behind it."""
        if self._spool is None:
            return
        with self._lock:
            self._spooling = True
            batches = list(self._memory)
        if self._written(batches):
            self._release(batches)

    def back(self) -> None:
        """The service answers again."""
        self._spooling = False

    def tidy(self) -> None:
        """Delete drained files; from the thread that puts."""
        if self._spool is not None and self._spool.drained:
            self._spool.tidy()

    def head(self) -> Batch | None:
        """The oldest body."""
        with self._lock:
            held = self._memory[0] if self._memory else None
        spooled = self._spool.first if self._spool else None
        if self._spool is not None and spooled is not None and (held is None or spooled < held.number):
            return self._read_spool(self._spool) or held
        return held

    def done(self, batch: Batch) -> None:
        """A body was acknowledged or will never be: let go of it, wherever it is by now."""
        with self._lock:
            held = bool(self._memory) and self._memory[0].number == batch.number
            if held:
                self._forget_first()
        if held:
            self._settle(batch.lines)
        elif self._spool:
            self._spool.done(batch.number)
            self._settle(0)

    def lost(self, lines: int) -> None:
        """Lines that came to an end before they could be put here."""
        self._settle(lines)

    def wait_settled(self, lines: int, timeout_s: float, *, delivered: bool = False) -> bool:
        """Wait until that many lines are settled and, if asked, the disk is drained."""
        with self._settled:
            return self._settled.wait_for(lambda: self._settled_lines >= lines and not (delivered and self.spool_bytes), timeout_s)

    def close(self) -> None:
        """Move the rest to disk and let go of it; what does not fit is dropped and counted."""
        self.spill()
        with self._lock:
            rest = list(self._memory)
        for batch in rest:
            self._drop(batch)
        self._release(rest)
        if self._spool:
            self._spool.close()

    def forget(self) -> None:
        """After a fork."""
        if self._spool:
            self._spool.forget()

    def _read_spool(self, spool: Spool) -> Batch | None:
        before = spool.corrupt
        batch = spool.head()
        if spool.corrupt > before:
            self._counters.add("corrupt", spool.corrupt - before, reason="a record of the spool could not be read back")
            self._settle(0)
        return batch

    def _spool_or_drop(self, batch: Batch) -> None:
        if not self._written([batch]):
            self._drop(batch)
        self._settle(batch.lines)

    def _written(self, batches: Sequence[Batch]) -> bool:
        if self._spool is None or not batches or self._spool.fitting(batches) < len(batches):
            return False
        try:
            self._spool.append(batches)
        except OSError as error:
            self._counters.add("spool_failures", reason=f"spool: {error}")
            return False
        self._counters.add("spooled", sum(batch.lines for batch in batches))
        return True

    def _drop(self, batch: Batch) -> None:
        where = "the queue" if self._spool is None else "the queue and the spool"
        self._counters.add("dropped", batch.lines, reason=f"no room left in {where}")

    def _release(self, batches: Sequence[Batch]) -> None:
        numbers = {batch.number for batch in batches}
        settled = 0
        with self._lock:
            while self._memory and self._memory[0].number in numbers:
                settled += self._memory[0].lines
                self._forget_first()
        self._settle(settled)

    def _forget_first(self) -> None:
        self._bytes -= len(self._memory.popleft().body)

    def _settle(self, lines: int) -> None:
        with self._settled:
            self._settled_lines += lines
            self._settled.notify_all()
