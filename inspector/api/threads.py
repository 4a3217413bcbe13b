"""The threads of one process: few and named, so that one kind of work cannot take those of another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
INTAKE, READS, ROUTES = 4, 3, 8  # together, with the batcher's one, no more than the connections of the pool
CONNECTIONS = INTAKE + READS + ROUTES + 1


class Threads:
    """Pools for coroutines that must not block their loop."""

    def __init__(self) -> None:
        self._intake = ThreadPoolExecutor(INTAKE, "intake")
        self._reads = ThreadPoolExecutor(READS, "reads")
        self._batches = ThreadPoolExecutor(1, "batches")

    async def take_in(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Bodies on their way to the disk."""
        return await asyncio.get_running_loop().run_in_executor(self._intake, lambda: work(*args, **kwargs))

    async def read(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Short queries."""
        return await asyncio.get_running_loop().run_in_executor(self._reads, lambda: work(*args, **kwargs))

    async def batch(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Single posts that go in together."""
        return await asyncio.get_running_loop().run_in_executor(self._batches, lambda: work(*args, **kwargs))

    def close(self) -> None:
        """Wait for what runs."""
        for pool in (self._batches, self._intake, self._reads):
            pool.shutdown(wait=True)
