"""Counts what became of everything that the trainer handed over; nothing is lost without a number here."""

from __future__ import annotations

import threading
from collections import Counter, deque

import msgspec

REASONS_KEPT = 20


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """A reading of the counters; trajectories, unless a comment says otherwise."""

    submitted: int = 0  # taken from the trainer, by `submit` or by `decide`
    sent: int = 0  # acknowledged as new
    duplicates: int = 0  # acknowledged before
    conflicts: int = 0  # the same id was posted with other content
    rejected: int = 0  # refused by the door, or unfit to be sent
    dead: int = 0  # refused and kept in the dead-letter file
    withheld: int = 0  # not sent since the redact hook failed
    spooled: int = 0  # written to disk
    adopted: int = 0  # found in the spool of a process that is gone
    dropped: int = 0  # lost: no room in memory nor on disk
    corrupt: int = 0  # records of the spool that could not be read back
    spool_failures: int = 0  # writes to the spool that the disk refused
    deadline_exceeded: int = 0  # calls of `decide` that ran out of time
    unaudited: int = 0  # advice given without a judgement
    retries: int = 0  # bodies posted again
    decisions: int = 0  # entries of the feed that were applied
    unreadable_decisions: int = 0  # entries of the feed that this client does not understand
    snapshots: int = 0  # times that the view was read anew
    hook_failures: int = 0  # exceptions of `on_decision`, and calls of it that were left out
    steps: int = 0  # reports of an update that were taken
    steps_lost: int = 0  # reports of an update that were refused, or given up
    queued_bytes: int = 0  # now waiting in memory
    spool_bytes: int = 0  # now waiting on disk
    reasons: tuple[str, ...] = ()  # the last refusals and losses
    trouble: str = ""  # the last failure to reach the service; empty while it answers


class Counters:
    """The counters of one client, added to from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._reasons: deque[str] = deque(maxlen=REASONS_KEPT)
        self.trouble = ""

    def add(self, name: str, count: int = 1, *, reason: str = "") -> None:
        """Count `count` more of the field `name` of Stats; a reason is kept among the last ones."""
        with self._lock:
            self._counts[name] += count
            if reason:
                self._reasons.append(reason[:500])

    def read(self, *, queued_bytes: int = 0, spool_bytes: int = 0) -> Stats:
        """The counts now."""
        with self._lock:
            return Stats(**self._counts, queued_bytes=queued_bytes, spool_bytes=spool_bytes, reasons=tuple(self._reasons), trouble=self.trouble)
