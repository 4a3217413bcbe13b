"""Rings for those who deliver where somebody is to be told; elsewhere a decision costs nothing."""

from __future__ import annotations

import time

from sqlalchemy import Engine

from inspector.errors import Unavailable
from inspector.queue import Doorbell
from inspector.store import webhooks
from inspector.store.session import transaction

FRESH_S = 5.0  # how long a new webhook may wait for its first bell; what is due is looked for all the same


class Ringer:
    """Knows which projects have webhooks."""

    def __init__(self, engine: Engine, bell: Doorbell) -> None:
        self._engine, self._bell = engine, bell
        self._listeners: set[int] = set()
        self._asked_at = float("-inf")

    def ring_for(self, projects: set[int]) -> None:
        """Something was decided there."""
        if time.monotonic() - self._asked_at > FRESH_S:
            self._ask()
        if projects & self._listeners:
            self._bell.ring()

    def _ask(self) -> None:
        self._asked_at = time.monotonic()
        try:
            with transaction(self._engine) as session:
                self._listeners = webhooks.listeners(session)
        except Unavailable:
            return  # whoever looks for what is due finds it
