"""Hints between processes that a project has something new; they may be lost, since whoever waits also looks by itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import structlog

from inspector.errors import Unavailable
from inspector.store.decisions import CHANNEL

log = structlog.get_logger()


class Waker:
    """Tells waiting readers of news, on a connection of its own: inside the deciding transaction it would make commits wait for each other."""

    def __init__(self, database_url: str) -> None:
        self._url = database_url
        self._connection: psycopg.Connection[Any] | None = None

    def wake(self, projects: set[int]) -> None:
        """These projects have something new."""
        payload = ",".join(str(project) for project in sorted(projects))
        for _ in range(2):
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = psycopg.connect(self._url, autocommit=True, connect_timeout=5)
                self._connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, payload))
                return
            except psycopg.OperationalError:
                self._connection = None
        log.warning("nobody was woken", projects=payload)

    def close(self) -> None:
        """End the connection; the next `wake` opens another."""
        if self._connection is not None:
            self._connection.close()


async def heard(database_url: str) -> AsyncIterator[set[int]]:
    """The projects of each notice, for ever; raises Unavailable when the connection breaks or there is none."""
    try:
        connection = await psycopg.AsyncConnection.connect(database_url, autocommit=True, connect_timeout=5, application_name="inspector listen")
        async with connection:
            await connection.execute(f"LISTEN {CHANNEL}")
            async for notice in connection.notifies():
                yield {int(project) for project in notice.payload.split(",") if project.isdecimal()}
    except (psycopg.Error, OSError) as error:
        raise Unavailable(f"not listening: {type(error).__name__}") from error
