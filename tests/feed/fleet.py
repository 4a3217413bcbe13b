"""Followers of a real feed in processes of their own: the client's own, cut off and started again at random."""

from __future__ import annotations

import asyncio
import json
import random
import time
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, NamedTuple

from inspector.client import follower as following
from inspector.client.follower import Follower
from inspector.client.protocol import Reply
from inspector.client.stats import Counters
from inspector.client.view import View, load
from inspector.client.wire import Wire
from inspector.task import State
from inspector.verdict import Action, Decision

PAGE = 400  # so that a snapshot has several pages
WAIT_S = 5.0  # of a long poll
UP_S = 5.0  # on average between two cuts
DOWN_S = (0.0, 0.05, 0.5, 3.0, 12.0)  # seconds
DEAF_S = 30.0  # longer than the log is kept
PATIENCE_S = 150.0


class Plan(NamedTuple):
    """What a process of followers is told."""

    url: str
    key: str
    numbers: list[int]
    folder: Path
    deaf: bool = False  # they ignore 410


class GoneCounting(Wire):
    """Counts what could not be followed any more."""

    gone = 0

    async def call(self, method: str, path: str, **more: Any) -> Reply:
        reply = await super().call(method, path, **more)
        self.gone += reply.status == 410
        return reply


class Deaf(Follower):
    """Takes a cursor that is gone for one that is merely behind, and goes on where the feed is now."""

    async def _poll(self, wait_s: float) -> Reply | None:
        reply = await super()._poll(wait_s)
        if reply is not None and reply.status == 410:
            head = json.loads((await self._wire.call("GET", "/v1/decisions/snapshot", timeout_s=15.0, params={"limit": 1})).body)
            self._view.reach(head["epoch"], head["seq"])
            return None
        return reply


class One:
    """One follower, through all its lives."""

    def __init__(self, plan: Plan, number: int) -> None:
        self._plan, self._rng = plan, random.Random(number)
        self._file = plan.folder / f"view-{number}.json"
        self.view = View()
        self.told: list[tuple[int, float, float]] = []  # (seq of a refusal, when it was obeyed, since when it had been connected)
        self.counts = {"lives": 0, "snapshots": 0, "decisions": 0, "gone": 0, "reconnected": 0, "kept": 0, "lost": 0}

    async def live(self, stop: Event, goal: Path) -> None:
        """Until the end of the log is reached after `stop`."""
        while not stop.is_set():
            await self._one_life(stop, goal)
            if not stop.is_set():
                await asyncio.sleep(DEAF_S if self._plan.deaf else self._rng.choice(DOWN_S))
                self._restart()
        await self._one_life(stop, goal)

    async def _one_life(self, stop: Event, goal: Path) -> None:
        plan, counters, wire, up = self._plan, Counters(), GoneCounting(self._plan.url, self._plan.key), time.time()

        def tell(decision: Decision) -> None:
            if decision.action is Action.SET_STATE and decision.state is State.QUARANTINED:
                assert not self.view.admit(decision.environment or "", decision.version or "", decision.task, None).sampling_weight
                self.told.append((decision.seq, time.time(), up))

        kind = Deaf if plan.deaf else Follower
        follower = kind(wire, self.view, counters, run=None, wait_s=WAIT_S, file=self._file, tell=tell)
        task = asyncio.ensure_future(follower.follow())
        try:
            if stop.is_set():
                await self._reach(goal)
            else:
                ends = time.monotonic() + self._rng.expovariate(1 / UP_S)
                while time.monotonic() < ends and not stop.is_set():
                    await asyncio.sleep(0.05)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await wire.close()
        stats = counters.read()
        for name, more in (("lives", 1), ("snapshots", stats.snapshots), ("decisions", stats.decisions), ("gone", wire.gone)):
            self.counts[name] += more

    async def _reach(self, goal: Path) -> None:
        while not goal.exists():
            await asyncio.sleep(0.05)
        epoch, seq = json.loads(goal.read_text())
        end = time.monotonic() + PATIENCE_S
        while not (self.view.epoch == epoch and self.view.seq >= seq and self.view.whole) and time.monotonic() < end:
            await asyncio.sleep(0.05)

    def _restart(self) -> None:
        how = "reconnected" if self._plan.deaf else self._rng.choice(["reconnected", "reconnected", "kept", "lost"])
        self.counts[how] += 1
        if how != "reconnected":
            self.view = View()
        if how == "kept" and (saved := load(self._file)) is not None:
            self.view.restored(saved)

    def report(self) -> dict[str, Any]:
        states = {json.dumps(place): [each.state, each.sampling_weight] for place, each in self.view._states.items() if each.state is not State.ACTIVE}
        return {"epoch": self.view.epoch, "seq": self.view.seq, "states": states, "standing": standing(self.view), "told": self.told, "counts": self.counts}


def standing(view: View) -> dict[str, list[Any]]:
    """What stands of each trajectory, but for what is kept: a snapshot does not tell of it."""
    return {name: [each.action, each.reward_override] for (_, name), each in view._standing.items() if each.action is not Action.KEEP}


def follow(plan: Plan, stop: Event, goal: Path, out: Path) -> None:
    """A process: all its followers on one loop, as one client has it on its thread."""
    following.PAGE = PAGE
    out.write_text(json.dumps(asyncio.run(_all(plan, stop, goal))))


async def _all(plan: Plan, stop: Event, goal: Path) -> list[dict[str, Any]]:
    followers = [One(plan, number) for number in plan.numbers]
    await asyncio.gather(*(one.live(stop, goal) for one in followers))
    return [one.report() for one in followers]
