"""Where the trainer's threads leave their trajectories and go on; bounded, and never locked during I/O."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from inspector.client.batches import Batch
from inspector.client.lines import Submitted
from inspector.client.ticket import Ticket

AT_ONCE = 64  # trajectories that are written before the next look at what is urgent
FIRST_GUESS_BYTES = 32 << 10
TICK_S = 0.5


class Taken(NamedTuple):
    """Work for one turn of the desk."""

    tickets: list[Ticket]
    returned: list[Batch]
    submitted: list[Submitted]
    flush: bool
    spill: bool
    stopped: bool  # and nothing is left


class Inbox:
    """Many threads put, one takes. What is not bytes yet is counted at the mean size of what was written before."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._changed = threading.Condition()  # of the fields below
        self._submitted: deque[tuple[Submitted, int]] = deque()
        self._tickets: deque[Ticket] = deque()
        self._returned: deque[Batch] = deque()
        self._bytes = 0
        self._mean = float(FIRST_GUESS_BYTES)
        self._flush = self._spill = False
        self.stopped = False  # may be set without the lock, by a finalizer
        self.accepted = 0  # lines that are owed an end

    def offer(self, submitted: Sequence[Submitted]) -> int:
        """How many of these, from the first on, found room."""
        with self._changed:
            taken = sum(1 for _ in itertools.takewhile(self._fits, submitted))
            self.accepted += taken
            self._changed.notify_all()
            return taken

    def wait_room(self, timeout_s: float) -> None:
        """Until something was taken, or the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._bytes <= self._max_bytes // 2, timeout_s)

    def ask(self, ticket: Ticket) -> None:
        """An urgent one: a trainer's thread waits for it."""
        with self._changed:
            self._tickets.append(ticket)
            self._changed.notify_all()

    def give_back(self, batch: Batch) -> None:
        """A body that was urgent and is not any more."""
        with self._changed:
            self._returned.append(batch)
            self.accepted += batch.lines
            self._changed.notify_all()

    def flush(self, *, spill: bool = False) -> None:
        """Close the open batch; with `spill`, move everything to disk."""
        with self._changed:
            self._flush, self._spill = True, self._spill or spill
            self._changed.notify_all()

    def stop(self) -> None:
        """Nothing comes any more."""
        with self._changed:
            self.stopped = True
            self._changed.notify_all()

    def take(self, wait_s: float | None) -> Taken:
        """What there is; waits for at most `wait_s`."""
        with self._changed:
            patience = TICK_S if wait_s is None else min(TICK_S, wait_s)
            self._changed.wait_for(lambda: self._tickets or self._returned or self._submitted or self._flush or self.stopped, patience)
            submitted = [self._next() for _ in range(min(AT_ONCE, len(self._submitted)))]
            flush = self._flush and not self._submitted
            spill = self._spill and flush
            self._flush, self._spill = self._flush and not flush, self._spill and not spill
            taken = Taken(list(self._tickets), list(self._returned), submitted, flush, spill, self.stopped and not self._submitted)
            self._tickets.clear()
            self._returned.clear()
            self._changed.notify_all()
            return taken

    def learn_size(self, size: int) -> None:
        """How many bytes a trajectory came to."""
        self._mean += (size - self._mean) / 16

    def _fits(self, trajectory: Submitted) -> bool:
        size = len(trajectory) if isinstance(trajectory, bytes) else int(self._mean)
        if self._submitted and self._bytes + size > self._max_bytes:
            return False
        self._submitted.append((trajectory, size))
        self._bytes += size
        return True

    def _next(self) -> Submitted:
        trajectory, size = self._submitted.popleft()
        self._bytes -= size
        return trajectory
