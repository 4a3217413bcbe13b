"""Lets single posts that come at the same time share one append, one COPY and one bell."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from inspector.api.threads import Threads
from inspector.errors import Unavailable
from inspector.intake import Project, Receipt
from inspector.store.decisions import Head

DEPTH = 16  # flushes that may wait; beyond them a post is told to come again


class Taken(NamedTuple):
    """The answer to a single post."""

    receipt: Receipt
    head: Head | None  # of the project's feed; None where it could not be read


class Accepted(NamedTuple):
    """The answer to several."""

    receipts: Sequence[Receipt]
    head: Head | None


class _Post(NamedTuple):
    project: Project
    line: bytes
    at: float
    answer: asyncio.Future[Taken]


class Pace(NamedTuple):
    """When to flush: whatever comes first."""

    seconds: float
    posts: int
    bytes: int


class Batcher:
    """Belongs to one event loop; `accept` runs in a thread of its own, one flush at a time."""

    def __init__(self, accept: Callable[[Project, Sequence[bytes]], Accepted], threads: Threads, pace: Pace) -> None:
        self._accept, self._threads, self._pace = accept, threads, pace
        self._waiting: deque[_Post] = deque()
        self._waiting_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Task[None] | None = None

    def post(self, project: Project, line: bytes) -> asyncio.Future[Taken]:
        """Resolved when the line is durable or refused. Raises Unavailable when too much waits already."""
        if len(self._waiting) >= DEPTH * self._pace.posts or self._waiting_bytes >= DEPTH * self._pace.bytes:
            raise Unavailable(f"{len(self._waiting)} single posts are waiting; send several as one body", retry_after_s=1.0)
        loop = asyncio.get_running_loop()
        post = _Post(project, line, loop.time(), loop.create_future())
        self._waiting.append(post)
        self._waiting_bytes += len(line)
        self._plan(loop)
        return post.answer

    async def drain(self) -> None:
        """Wait until nothing waits."""
        while self._waiting or self._flushing is not None:
            self._begin()
            if self._flushing is not None:
                await asyncio.wait({self._flushing})

    def _plan(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._flushing is not None or not self._waiting:
            return  # the end of a flush plans the next
        if len(self._waiting) >= self._pace.posts or self._waiting_bytes >= self._pace.bytes:
            self._begin()
        elif self._timer is None:
            self._timer = loop.call_at(self._waiting[0].at + self._pace.seconds, self._begin)

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._flushing is None and self._waiting:
            self._flushing = asyncio.create_task(self._flush(self._take()))
            self._flushing.add_done_callback(self._ended)

    def _ended(self, _: asyncio.Task[None]) -> None:
        self._flushing = None
        self._plan(asyncio.get_running_loop())

    def _take(self) -> list[_Post]:
        taken: list[_Post] = []
        size = 0
        while self._waiting and len(taken) < self._pace.posts and size < self._pace.bytes:
            taken.append(self._waiting.popleft())
            size += len(taken[-1].line)
        self._waiting_bytes -= size
        return taken

    async def _flush(self, posts: Sequence[_Post]) -> None:
        by_project: dict[Project, list[_Post]] = {}
        for post in posts:
            by_project.setdefault(post.project, []).append(post)
        for project, mine in by_project.items():
            accepting = asyncio.ensure_future(self._threads.batch(self._accept, project, [post.line for post in mine]))
            await asyncio.wait({accepting})
            _answer(mine, accepting)


def _answer(posts: Sequence[_Post], accepting: asyncio.Future[Accepted]) -> None:
    error = accepting.exception()
    for at, post in enumerate(posts):
        if post.answer.done():  # its request was given up
            continue
        if error is not None:
            post.answer.set_exception(error)
        else:
            post.answer.set_result(Taken(accepting.result().receipts[at], accepting.result().head))
