"""A service, its address, clients that are closed at the end, and trajectories to post."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from inspector.client import Client
from tests.client.server import Service, serving

KEY = "ins_test"


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def url(service: Service) -> Iterator[str]:
    with serving(service) as address:
        yield address


@pytest.fixture
def client(url: str) -> Iterator[Callable[..., Client]]:
    """Makes clients; their long poll is short, so that they end soon."""
    made: list[Client] = []

    def make(address: str = url, **options: Any) -> Client:
        made.append(Client(address, KEY, **({"batch_ms": 5.0, "poll_wait_s": 5.0} | options)))
        return made[-1]

    yield make
    for one in made:
        one._close(1.0)


@pytest.fixture
def enforcing(client: Callable[..., Client], service: Service) -> Client:
    """A client that follows the feed of a run in enforce."""
    service.run_modes["run7"] = "enforce"
    one = client(run="run7")
    one.admit("acme/terminal", "1")
    until(lambda: one.stats.snapshots == 1)
    return one


def envelope(number: int, **fields: Any) -> dict[str, Any]:
    """A small trajectory."""
    return {
        "id": f"t{number}",
        "environment": {"id": "acme/terminal", "version": "1"},
        "task": {"id": "fix"},
        "group": {"id": f"g{number // 4}", "index": number % 4, "size": 4},
        "reward": 1.0,
        "trajectory": {"schema_version": "ATIF-v1.8", "steps": [{"step_id": 1, "source": "user", "message": f"go {number}"}]},
    } | fields


def spools(folder: Path) -> list[Path]:
    """The spool files below; `glob` would fail on a folder that the client removes meanwhile."""
    return [Path(inside, name) for inside, _, names in os.walk(folder) for name in names if name.endswith(".spool")]


def until(holds: Callable[[], Any], timeout_s: float = 10.0) -> None:
    """Wait for a state that another thread brings about; fails after `timeout_s`."""
    end = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < end, f"{holds} did not come true in {timeout_s} s"
        time.sleep(0.005)
