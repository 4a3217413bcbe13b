"""Tells the processes that serve long polls which projects' logs went on: by Redis, and by Postgres where nobody listens there.

Only a hint: whoever waits also looks by itself once a second, so what is lost here costs no more than that.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable

import redis
import redis.asyncio
import structlog

from inspector.errors import Unavailable
from inspector.queue import plain_url, redis_client
from inspector.store.notices import Waker

log = structlog.get_logger()
CHANNEL = "inspector:feed"
QUIET_S = 30.0  # without news, after which the connection is tried
ANSWER_S = 5.0


class News:
    """Tells of new decisions after their commit."""

    def __init__(self, redis_url: str, waker: Waker, also: Callable[[set[int]], None] | None = None) -> None:
        self._redis = redis_client(redis_url) if redis_url else None
        self._waker, self._also = waker, also
        self.failures = 0

    def wake(self, projects: set[int]) -> None:
        """These projects have something new."""
        if projects and not self._published(projects):
            self._waker.wake(projects)
        if projects and self._also is not None:
            self._also(projects)

    def close(self) -> None:
        """End the connections."""
        if self._redis is not None:
            self._redis.close()
        self._waker.close()

    def _published(self, projects: Iterable[int]) -> bool:
        """Whether somebody heard it."""
        if self._redis is None:
            return False
        try:
            return bool(self._redis.publish(CHANNEL, ",".join(str(project) for project in sorted(projects))))
        except (redis.RedisError, OSError):
            self.failures += 1
            return False


async def heard(redis_url: str) -> AsyncIterator[set[int]]:
    """The projects of each piece of news, for ever; raises Unavailable when the connection breaks or there is none."""
    client = redis.asyncio.Redis.from_url(plain_url(redis_url), socket_connect_timeout=ANSWER_S, socket_timeout=ANSWER_S)
    try:
        async with client, client.pubsub() as listening:
            await listening.subscribe(CHANNEL)
            while True:
                message = await listening.get_message(timeout=QUIET_S)
                if message is not None and message["type"] == "message":
                    yield {int(project) for project in bytes(message["data"]).split(b",") if project.isdigit()}
                elif message is None:
                    await listening.ping()
    except (redis.RedisError, OSError) as error:
        raise Unavailable(f"not listening to Redis: {type(error).__name__}") from error
