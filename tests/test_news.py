"""Hints between processes go by Redis where somebody listens there, and by Postgres where not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector import news, queue
from inspector.embedded import Stack
from inspector.errors import Unavailable
from inspector.news import News
from inspector.store import decisions, projects
from inspector.store.decisions import Numbered
from inspector.store.notices import Waker
from inspector.store.session import transaction
from inspector.verdict import Action, Decision, Scope
from tests.api.conftest import House, open_house  # noqa: F401 -- a fixture
from tests.client.conftest import until


class Noted(Waker):
    """Of Postgres: which projects it was asked to tell of."""

    def __init__(self) -> None:
        super().__init__("")
        self.told: list[set[int]] = []

    def wake(self, projects: set[int]) -> None:
        self.told.append(projects)


async def first(url: str, ready: Callable[[], None]) -> set[int]:
    async def tell() -> None:
        while True:
            await asyncio.sleep(0.02)
            ready()

    telling = asyncio.ensure_future(tell())
    try:
        async with asyncio.timeout(20):
            return await anext(news.heard(url))
    finally:
        telling.cancel()


def test_who_listens_hears_of_the_projects(redis: str) -> None:
    behind = Noted()
    told = News(redis, behind)
    assert asyncio.run(first(redis, lambda: told.wake({7, 3}))) == {3, 7}
    told.close()


def test_where_nobody_listens_and_where_redis_is_away_postgres_is_asked(redis: str, tmp_path: Path) -> None:
    for url in (redis, f"redis+socket://{tmp_path}/none", ""):
        behind = Noted()
        told = News(url, behind)
        told.wake({3})
        told.wake(set())
        assert behind.told == [{3}], url
        assert told.failures == url.startswith(f"redis+socket://{tmp_path}")


def test_a_redis_that_dies_ends_the_listening(tmp_path: Path) -> None:
    with Stack(tmp_path, parts={"redis"}) as stack:
        redis_url = stack.redis_url
        threading.Timer(0.3, stack.stop).start()

        async def listen() -> None:
            async with asyncio.timeout(30):
                async for _ in news.heard(redis_url):
                    pass

        with pytest.raises(Unavailable):
            asyncio.run(listen())


def test_a_long_poll_is_woken_by_redis_alone_and_a_flush_costs_nothing(
    redis: str,
    open_house: Callable[..., House],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("inspector.api.hub.LOOK_S", 3600.0)
    house = open_house(redis_url=redis)
    queue.redis_client(redis).flushall()
    with transaction(house.engine) as session:
        project, _ = projects.by_name(session, "acme")

    def decide() -> None:
        until(lambda: queue.redis_client(redis).pubsub_numsub(news.CHANNEL)[0][1], 20)
        with transaction(house.engine) as session:
            decisions.append(session, project, [Numbered(Decision(seq=0, scope=Scope.RUN, action=Action.KEEP), None)])
        told = News(redis, Noted())
        told.wake({project})
        told.close()

    timer = threading.Timer(0.3, decide)
    timer.start()
    page = house.get("/v1/decisions", wait=25).json()
    timer.join()
    assert [d["seq"] for d in page["decisions"]] == [1]
    assert house.app.state.service.hub.wakes == 1
