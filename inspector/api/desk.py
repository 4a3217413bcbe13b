"""Waits for the verdicts of trajectories on behalf of many requests: one query a project, however many wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from uuid import UUID

from sqlalchemy import Engine

from inspector.api.hub import Hub
from inspector.api.threads import Threads
from inspector.errors import Unavailable
from inspector.store import verdicts
from inspector.store.session import transaction
from inspector.store.verdicts import Ruled
from inspector.verdict import Action

Rulings = dict[UUID, Ruled]


class _Ticket:
    """What one request waits for."""

    def __init__(self, keys: Sequence[UUID]) -> None:
        self.pending = set(keys)
        self.found: Rulings = {}
        self.done = asyncio.Event()

    def take(self, rulings: Rulings) -> None:
        for key in self.pending & rulings.keys():
            self.found[key] = rulings[key]
        self.pending -= {key for key, ruled in self.found.items() if ruled.action is not Action.HOLD}  # a hold is told only where nothing better comes
        if not self.pending:
            self.done.set()


class Desk:
    """Keeps the tickets of those who wait."""

    def __init__(self, engine: Engine, threads: Threads, hub: Hub) -> None:
        self._engine, self._threads, self._hub = engine, threads, hub
        self._tickets: dict[int, set[_Ticket]] = {}
        self._asking: dict[int, bool] = {}  # project -> whether to ask once more after the query that runs
        self._tasks: set[asyncio.Task[None]] = set()
        hub.told.append(self.look)

    async def rulings(self, project: int, keys: Sequence[UUID], wait_s: float) -> Rulings:
        """What is decided of these; waits until all are, at most `wait_s`. Raises Unavailable only where it does not wait."""
        if not keys:
            return {}
        with self._hub.place(wait_s) as granted:
            if not granted:
                return await self._threads.read(self._read, project, list(keys))
            return await self._waited(project, _Ticket(keys), time.monotonic() + wait_s)

    async def _waited(self, project: int, ticket: _Ticket, end: float) -> Rulings:
        self._tickets.setdefault(project, set()).add(ticket)
        self.look({project})
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, end - time.monotonic())):
                    await ticket.done.wait()
        finally:
            self._tickets[project].discard(ticket)
            if not self._tickets[project]:
                del self._tickets[project]
        return ticket.found

    def look(self, projects: Collection[int]) -> None:
        """Something happened in these projects; none named means that it is time to look again everywhere."""
        for project in list(self._tickets):
            if self._hub.closing:
                for ticket in self._tickets[project]:
                    ticket.done.set()
            elif not projects or project in projects:
                self._ask(project)

    def _ask(self, project: int) -> None:
        if project in self._asking:
            self._asking[project] = True
            return
        self._asking[project] = False
        task = asyncio.create_task(self._serve(project))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, project: int) -> None:
        try:
            keys = list(set().union(*(ticket.pending for ticket in self._tickets.get(project, ()))))
            if keys:
                rulings = await self._threads.read(self._read, project, keys)
                for ticket in list(self._tickets.get(project, ())):
                    ticket.take(rulings)
        except Unavailable:
            pass  # looked at again within a second, as long as somebody waits
        finally:
            if self._asking.pop(project):
                self._ask(project)

    def _read(self, project: int, keys: Sequence[UUID]) -> Rulings:
        with transaction(self._engine) as session:
            return verdicts.rulings(session, project, keys)
