"""The async twin gives the same answers and never holds up its loop."""

from __future__ import annotations

import asyncio
import time

import pytest

from inspector.client import AsyncClient
from inspector.errors import Unavailable
from inspector.verdict import Action
from tests.client.conftest import KEY, envelope


def test_it_submits_decides_flushes_and_closes(url, service):
    async def train():
        async with AsyncClient(url, KEY, run="run7") as one:
            await one.submit([envelope(0), envelope(1)])
            assert await one.flush(5)
            decisions = await one.decide([envelope(2)], wait_s=5.0)
            assert await one.close(5)
            return decisions, one.stats

    decisions, stats = asyncio.run(train())
    assert (decisions["t2"].action, stats.sent, service.order) == (Action.KEEP, 3, ["t0", "t1", "t2"])


@pytest.mark.parametrize("fault", ["hang", "drip", 503])
def test_its_loop_runs_on_while_the_service_hangs(url, service, fault):
    service.fault = fault
    gaps = []

    async def tick():
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.01)
            gaps.append(time.monotonic() - began)

    async def train():
        one = AsyncClient(url, KEY, deadline_s=0.3, max_queue_bytes=10_000)
        ticking = asyncio.ensure_future(tick())
        began = time.monotonic()
        decisions = await one.decide([envelope(0)])
        took = time.monotonic() - began
        await one.submit([envelope(number) for number in range(100)])
        flushed = await one.flush(0.3)
        ticking.cancel()
        await one.close(0.5)
        return decisions, took, flushed

    decisions, took, flushed = asyncio.run(train())
    assert (decisions.unaudited, flushed) == (1, False)
    assert took < 0.6
    assert sorted(gaps)[len(gaps) // 2] < 0.1


def test_a_strict_one_raises_where_it_is_awaited(url, service):
    service.fault = "hang"

    async def train():
        one = AsyncClient(url, KEY, deadline_s=0.1, strict=True)
        with pytest.raises(Unavailable):
            await one.decide(envelope(0))
        with pytest.raises(Unavailable):
            await one.flush(0.1)
        with pytest.raises(Unavailable):
            await one.close(0.2)

    asyncio.run(train())
