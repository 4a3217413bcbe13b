"""Keeps the leases of the block in hand alive while it is inspected."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import structlog
from sqlalchemy import Engine

from inspector.errors import Unavailable
from inspector.store import work
from inspector.store.session import driver, transaction
from inspector.store.work import Claim

log = structlog.get_logger()


class Heartbeat:
    """One thread a process, started with the first block; it does nothing for a block that ends before the first beat."""

    def __init__(self, engine: Engine, *, lease_s: float, every_s: float) -> None:
        self._engine = engine
        self._lease_s = lease_s
        self._every_s = every_s
        self._changed = threading.Condition()
        self._held: Sequence[Claim] = ()
        self._thread: threading.Thread | None = None

    @contextmanager
    def holding(self, claims: Sequence[Claim]) -> Iterator[None]:
        """The leases of these claims are extended until the block ends."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
            self._thread.start()
        self._hold(claims)
        try:
            yield
        finally:
            self._hold(())

    def _hold(self, claims: Sequence[Claim]) -> None:
        with self._changed:
            self._held = claims
            self._changed.notify()

    def _beat(self) -> None:
        while True:
            with self._changed:
                held = self._held
                if self._changed.wait(self._every_s if held else None):
                    continue  # another block, or none: its first beat is a whole interval away
            try:
                with transaction(self._engine) as session:
                    driver(session).execute("SET LOCAL synchronous_commit = off")
                    work.extend(session, held, self._lease_s)
            except Unavailable as error:
                log.warning("no heartbeat", reason=str(error))
