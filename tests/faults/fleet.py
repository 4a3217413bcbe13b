"""Audit workers as plain processes that a test may kill, stop and start again."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import psycopg

from inspector import catalog, policy
from inspector.audit import Auditor, Pace
from inspector.errors import Unavailable
from inspector.store.segments import SegmentReader
from inspector.store.session import connect
from tests.audit.conftest import Desk

CONTEXT = multiprocessing.get_context("forkserver")  # children come from a clean process that has everything imported already
CONTEXT.set_forkserver_preload(["inspector.audit", "inspector.store.segments", "tests.faults.fleet"])


def start(target: Callable[..., None], *arguments: Any) -> ForkServerProcess:
    process = CONTEXT.Process(target=target, args=arguments, daemon=True)
    process.start()
    return process


def address(desk: Desk) -> str:
    return desk.engine.url.render_as_string(hide_password=False).replace("+psycopg", "")


def until(fulfilled: Callable[[], bool], patience_s: float, what: str) -> None:
    """Wait, however slow the machine is, for what is certain to come."""
    ends = time.monotonic() + patience_s
    while not fulfilled():
        assert time.monotonic() < ends, f"not within {patience_s:g} s: {what}"
        time.sleep(0.05)


def audit_for_ever(url: str, root: str, pace: tuple[Any, ...]) -> None:
    """What a worker process does, without Celery."""
    auditor = None
    while True:
        try:
            auditor = auditor or Auditor(
                connect(url, pool_size=2),
                SegmentReader(Path(root)),
                catalog.load(),
                policy.load(None),
                Pace(*pace),
                wake=lambda projects: None,
                watch=lambda watched: None,
            )
            auditor.drain()
        except Unavailable:
            pass
        time.sleep(0.05)


class Fleet:
    """Some workers on one desk."""

    def __init__(self, desk: Desk, pace: Pace, size: int) -> None:
        self._arguments = (address(desk), str(desk.root), tuple(pace))
        self._pace = pace
        self.killed = self.stopped = 0
        self.workers = [start(audit_for_ever, *self._arguments) for _ in range(size)]

    def strike(self, rng: random.Random) -> None:
        """Kill a worker and start another, or stop one past its lease and let it go on."""
        at = rng.randrange(len(self.workers))
        worker = self.workers[at]
        assert worker.pid is not None
        if rng.random() < 0.6:
            worker.kill()
            worker.join()
            self.workers[at] = start(audit_for_ever, *self._arguments)
            self.killed += 1
        else:
            os.kill(worker.pid, signal.SIGSTOP)
            time.sleep(self._pace.lease_s * 1.3)
            os.kill(worker.pid, signal.SIGCONT)
            self.stopped += 1

    def end(self) -> None:
        for worker in self.workers:
            worker.kill()
            worker.join()


def scalar(url: str, query: str, *values: Any) -> Any:
    with psycopg.connect(url, connect_timeout=10) as connection:
        row = connection.execute(query, values).fetchone()
    assert row is not None
    return row[0]
