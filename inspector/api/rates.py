"""How many requests a project may send in a minute, counted over all processes where there is a Redis."""

from __future__ import annotations

import asyncio
import time

import redis
import structlog
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage, RedisStorage
from limits.strategies import MovingWindowRateLimiter

from inspector.api.threads import Threads
from inspector.errors import TooMany
from inspector.queue import redis_client

log = structlog.get_logger()
AWAY_S = 1.0  # how long Redis is left alone after it did not answer
MOST = 50  # in a block: each request counted is an entry in Redis


class Rates:
    """A moving window. Requests are counted in small blocks, a hundredth of the limit at most, so that most of them need no round trip."""

    def __init__(self, per_minute: int, redis_url: str, threads: Threads) -> None:
        self._limit = RateLimitItemPerMinute(per_minute)
        self._block = max(1, min(per_minute // 100, MOST))
        self._threads = threads
        self._shared = bool(redis_url)
        self._limiter = MovingWindowRateLimiter(_storage(redis_url))
        self._left: dict[int, tuple[int, float]] = {}  # project -> (requests counted and not used yet, good until)
        self._locks: dict[int, asyncio.Lock] = {}
        self._trust_again_at = 0.0
        self.failures = 0  # requests let through because Redis was away

    async def spend(self, project: int) -> None:
        """Count one request; raises TooMany."""
        if self._use_one(project):
            return
        async with self._locks.setdefault(project, asyncio.Lock()):  # of many at once, one counts for all
            if self._use_one(project):
                return
            taken = await self._threads.read(self._take, project) if self._shared else self._take(project)
            self._left[project] = (taken - 1, time.monotonic() + 60.0)
        if taken == 0:
            raise TooMany(f"more than {self._limit.amount} requests in a minute", retry_after_s=max(1.0, 60.0 * self._block / self._limit.amount))

    def _use_one(self, project: int) -> bool:
        left, until = self._left.get(project, (0, 0.0))
        if left <= 0 or time.monotonic() >= until:
            return False
        self._left[project] = (left - 1, until)
        return True

    def _take(self, project: int) -> int:
        if time.monotonic() < self._trust_again_at:
            self.failures += 1
            return 1
        try:
            for block in sorted({self._block, 1}, reverse=True):
                if self._limiter.hit(self._limit, "project", str(project), cost=block):
                    return block
        except (redis.RedisError, OSError) as error:
            self.failures += 1
            self._trust_again_at = time.monotonic() + AWAY_S
            log.warning("rates are not counted", reason=type(error).__name__)
            return 1
        return 0


def _storage(redis_url: str) -> MemoryStorage | RedisStorage:
    if not redis_url:
        return MemoryStorage()
    return RedisStorage("redis://", connection_pool=redis_client(redis_url).connection_pool, key_prefix="inspector:rate")
