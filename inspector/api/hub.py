"""Wakes the coroutines that wait for something new in a project: the process listens once, and looks once a second behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import structlog
from sqlalchemy import Engine

from inspector import news
from inspector.api.threads import Threads
from inspector.errors import Unavailable
from inspector.store import decisions, notices
from inspector.store.decisions import Head
from inspector.store.session import transaction

log = structlog.get_logger()
LOOK_S = 1.0
AGAIN_S = 0.5  # after the connection broke


class Watch:
    """One reader that waits for a project's feed to go on."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def begin(self) -> None:
        """What happens from now on ends the next wait; to be called before looking oneself."""
        self._event.clear()

    def wake(self) -> None:
        """Something happened."""
        self._event.set()

    async def wait(self, timeout_s: float) -> None:
        """Until woken, at most `timeout_s`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._event.wait()


class Hub:
    """The heads of those feeds that somebody waits for."""

    def __init__(self, engine: Engine, database_url: str, redis_url: str, threads: Threads, limit: int) -> None:
        self._engine, self._threads, self._limit = engine, threads, limit
        self._sources = [partial(notices.heard, database_url), *([partial(news.heard, redis_url)] if redis_url else [])]
        self._watches: dict[int, set[Watch]] = {}
        self._heads: dict[int, Head] = {}
        self._news: set[int] = set()
        self._rouse = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.told: list[Callable[[Collection[int]], None]] = []  # called with the projects where something happened
        self.waiting = 0
        self.wakes = 0  # readers woken
        self.closing = False

    def start(self) -> None:
        """Begin to listen and to look."""
        self._tasks = [*(asyncio.create_task(self._listen(heard)) for heard in self._sources), asyncio.create_task(self._look())]

    def close(self) -> None:
        """Wake everybody for the last time; from now on nobody waits."""
        self.closing = True
        self._rouse.set()
        for watches in self._watches.values():
            for watch in watches:
                watch.wake()
        for tell in self.told:
            tell(())

    async def stop(self) -> None:
        """End the tasks."""
        self.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @contextmanager
    def place(self, wait_s: float) -> Iterator[bool]:
        """A place to wait in; False where all are taken, and the caller is to answer at once."""
        granted = wait_s > 0 and self.waiting < self._limit and not self.closing
        self.waiting += granted
        try:
            yield granted
        finally:
            self.waiting -= granted

    @contextmanager
    def watching(self, project: int) -> Iterator[Watch]:
        """A watch on a project's feed."""
        watch = Watch()
        self._watches.setdefault(project, set()).add(watch)
        try:
            yield watch
        finally:
            self._watches[project].discard(watch)
            if not self._watches[project]:
                del self._watches[project]
                self._heads.pop(project, None)

    async def _listen(self, heard: Callable[[], AsyncIterator[set[int]]]) -> None:
        while True:
            try:
                async for projects in heard():
                    self._news |= projects
                    self._rouse.set()
            except Unavailable as error:
                log.warning("not listening", reason=error.reason)
            await asyncio.sleep(AGAIN_S)

    async def _look(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._rouse.wait()
            if self._rouse.is_set():
                projects, self._news = self._news, set()
                self._rouse.clear()
            else:
                projects = set(self._watches)
                for tell in self.told:
                    tell(())
            await self._compare(projects & self._watches.keys())
            if projects:
                for tell in self.told:
                    tell(projects)

    async def _compare(self, projects: set[int]) -> None:
        """Wake those whose feed went on."""
        if not projects:
            return
        try:
            heads = await self._threads.read(self._read_heads, projects)
        except Unavailable:
            return  # the next look, a second from now, is the repetition
        for project, head in heads.items():
            if self._heads.get(project) != head:
                self._heads[project] = head
                for watch in self._watches.get(project, ()):
                    watch.wake()
                    self.wakes += 1

    def _read_heads(self, projects: set[int]) -> dict[int, Head]:
        with transaction(self._engine) as session:
            return decisions.heads(session, projects)
