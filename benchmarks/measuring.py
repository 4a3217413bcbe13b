"""One way of posting, measured: CPU of every process of a stack for each trajectory, beside `json.loads` of the same bytes."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from benchmarks.stacks import Running
from benchmarks.workload import Posted
from inspector import queue
from inspector.queue import Doorbell

BELLS = 60
LOADED = 200  # lines that `json.loads` is measured on


class Way(NamedTuple):
    """How trajectories are posted."""

    batch: int
    form: str
    clients: int = 2


@dataclass
class Tally:
    """What so many trajectories cost, over all rounds; seconds."""

    trajectories: int = 0
    wall: float = 0.0
    loads: float = 0.0  # json.loads of as many lines
    parts: dict[str, float] = field(default_factory=dict)
    rounds: list[float] = field(default_factory=list)  # seconds a trajectory, in each

    @property
    def each(self) -> float:
        """CPU seconds a trajectory, in the middle one of the rounds."""
        return median(self.rounds)

    @property
    def multiple(self) -> float:
        """Of json.loads of the same bytes."""
        return sum(self.parts.values()) / self.loads if self.loads else 0.0

    def add(self, parts: dict[str, float], trajectories: int, wall: float, loads: float) -> None:
        self.trajectories += trajectories
        self.wall += wall
        self.loads += loads
        self.rounds.append(sum(parts.values()) / trajectories)
        for part, seconds in parts.items():
            self.parts[part] = self.parts.get(part, 0.0) + seconds


def measure(tally: Tally, running: Running, posted: Sequence[Posted], way: Way) -> None:
    """Post, wait for every verdict, and add what it cost."""
    loads = loading(posted) / 2
    requests = running.requests(posted, way.batch, way.form)
    before, began = running.cpu(), time.monotonic()
    running.send(requests, way.clients)
    running.settle(posted)
    wall, after = time.monotonic() - began, running.cpu()
    loads += loading(posted) / 2  # before and after: on a shared machine the same work costs more or less from minute to minute
    tally.add({part: after[part] - before[part] for part in after}, len(posted), wall, loads)


def loading(posted: Sequence[Posted]) -> float:
    """CPU seconds that `json.loads` takes for as many lines, here and now."""
    lines = [one.line for one in posted[:LOADED]] if len(posted[0].line) < 1 << 20 else [one.line for one in posted[:2]]
    began = time.process_time()
    for line in lines:
        json.loads(line)
    return (time.process_time() - began) / len(lines) * len(posted)


def bell_cost(running: Running) -> float:
    """CPU seconds of one doorbell: its publication, Redis, Celery's handling, and a visit that finds nothing."""
    settings = running.stack.settings
    bell, redis = Doorbell(queue.application(settings), settings.redis_url), queue.redis_client(settings.redis_url)
    idle = _idle(running)
    before, published, began = sum(running.cpu().values()), 0.0, time.monotonic()
    for _ in range(BELLS):
        at = time.thread_time()
        bell.ring()
        published += time.thread_time() - at
        while redis.exists(queue.BELL):
            time.sleep(0.005)
    time.sleep(0.2)
    spent = sum(running.cpu().values()) - before - idle * (time.monotonic() - began)
    return max(0.0, spent + published) / BELLS


def _idle(running: Running, watched_s: float = 5.0) -> float:
    """CPU seconds a second of a stack that has nothing to do."""
    before = sum(running.cpu().values())
    time.sleep(watched_s)
    return (sum(running.cpu().values()) - before) / watched_s
