"""A hundred followers, cut off and started again at random, end where the log itself ends."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import quantiles
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Engine

from inspector import quarantine, queue
from inspector.embedded import Stack
from inspector.keys import new_keys
from inspector.news import News
from inspector.settings import Limits, Settings
from inspector.store import decisions, environments, projects, verdicts
from inspector.store.codes import ACTION_CODE
from inspector.store.decisions import Numbered
from inspector.store.environments import EnvironmentName
from inspector.store.notices import Waker
from inspector.store.session import connect, driver, transaction
from inspector.store.verdicts import NewVerdict
from inspector.task import State
from inspector.verdict import Action, Decision, Mode, Scope
from tests.faults.fleet import CONTEXT, start
from tests.feed.fleet import Plan, follow

pytestmark = pytest.mark.slow

FOLLOWERS, PROCESSES, WRITERS = 100, 4, 4
DECISIONS, TRAJECTORIES, RARE, VERSIONS, TASKS = 10_000, 800, 5_000, 10, 4
SETTLED_S, PAUSE_S = 8.0, 0.4
SECONDS = 50.0  # that the writers are to take
HORIZON = 1500  # decisions; those away for longer start from the snapshot
SETTINGS = Settings(limits=Limits(requests_per_minute=10_000_000), log_level="warning")


class Quarantine(NamedTuple):
    """When somebody asked for one, and its number."""

    asked_at: float
    seq: int


class Desk:
    """Writes the log as audits and people do, and keeps beside it all that was ever in it."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.engine: Engine = connect(stack.database_url, pool_size=WRITERS + 2)
        self.lock = threading.Lock()
        self.log: dict[int, Decision] = {}
        self.quarantines: list[Quarantine] = []
        self.versions = [EnvironmentName("team/e", str(at)) for at in range(VERSIONS)]
        self.keys = new_keys(TRAJECTORIES + RARE)
        self.rare = iter(range(TRAJECTORIES, TRAJECTORIES + RARE))
        with transaction(self.engine) as session:
            self.project = projects.ids(session)[0][0]
            found = environments.ensure(session, self.project, self.versions)
            tasks = environments.ensure_tasks(session, [(id_, f"t{at}") for id_ in found.values() for at in range(TASKS)])
            environments.join_tasks(session, self.project, tasks.values())
            rows = [NewVerdict(key, self.project, None, None, 0.5, 1, 1, 0, None, False, True, False, False, None, b"", None) for key in self.keys]
            verdicts.add(session, rows, [])

    def write(self, writer: int) -> None:
        """A writer's share of all decisions."""
        rng = random.Random(writer)
        news = News(self.stack.redis_url, Waker(self.stack.database_url))
        while (done := len(self.log)) < DECISIONS:
            self._set_state(rng) if rng.random() < 0.06 else self._decide(rng, writer, news)
            ahead = done / DECISIONS * SECONDS - (time.time() - self.began)
            time.sleep(max(0.0, min(1.0, ahead)) + rng.random() * 0.02)
        news.close()

    began = calm_since = 0.0

    def _decide(self, rng: random.Random, writer: int, news: News) -> None:
        """As a closing transaction does: the verdicts first, the numbers last, the news after the commit."""
        chosen = sorted({*rng.sample(range(writer, TRAJECTORIES, WRITERS), rng.randrange(1, 16)), *self._once(rng)})
        actions = [rng.choice([Action.KEEP, Action.EXCLUDE, Action.OVERRIDE_REWARD]) for _ in chosen]
        entries = [self._entry(number, action, rng.random()) for number, action in zip(chosen, actions, strict=True)]
        with transaction(self.engine) as session:
            driver(session).execute(
                "UPDATE verdict v SET action = said.action FROM unnest(%s::uuid[], %s::int[]) AS said(key, action) WHERE v.key = said.key",
                ([self.keys[number] for number in chosen], [ACTION_CODE[action] for action in actions]),
            )
            last = decisions.append(session, self.project, entries)
        self._note({last - len(entries) + 1 + at: entry.decision for at, entry in enumerate(entries)})
        news.wake({self.project})

    def _once(self, rng: random.Random) -> list[int]:
        """Now and then a trajectory of which nothing is said before or after: who misses that never makes up for it."""
        with self.lock:
            return [next(self.rare)] if rng.random() < 0.3 else []

    def _entry(self, number: int, action: Action, reward: float) -> Numbered:
        override = reward if action is Action.OVERRIDE_REWARD else None
        told = Decision(seq=0, scope=Scope.TRAJECTORY, action=action, trajectory=f"t{number}", reward_override=override, mode=Mode.ENFORCE)
        return Numbered(told, self.keys[number])

    def calm(self) -> None:
        """Quarantines alone, while nothing else is decided."""
        time.sleep(SETTLED_S)
        self.calm_since = time.time()
        for name in self.versions:
            for at in range(TASKS):
                self._put(name, f"t{at}", State.QUARANTINED)
                time.sleep(PAUSE_S)

    def _set_state(self, rng: random.Random) -> None:
        name, task = rng.choice(self.versions), rng.choice([None, *(f"t{at}" for at in range(TASKS))])
        self._put(name, task, rng.choice([State.QUARANTINED, State.QUARANTINED, State.PROBATION, State.ACTIVE]))

    def _put(self, name: EnvironmentName, task: str | None, state: State) -> None:
        asked_at = time.time()
        with transaction(self.engine) as session:
            told = quarantine.set_state(session, *name, task, state, author="person:p", note="", project=None)
            decisions.notify(session, told)
        seq = told[self.project]
        with transaction(self.engine) as session:
            self._note(decisions.read(session, self.project, [seq]))
        if state is State.QUARANTINED:
            self.quarantines.append(Quarantine(asked_at, seq))

    def _note(self, logged: dict[int, Decision]) -> None:
        with self.lock:
            assert not self.log.keys() & logged.keys(), "no number is given twice"
            self.log |= logged

    def trim(self) -> None:
        """As the operator's horizon does, all the time."""
        with transaction(self.engine) as session:
            decisions.trim(session, self.project, HORIZON)

    def fold(self) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
        """What one who obeyed every entry in order would know: (states, what stands)."""
        assert sorted(self.log) == list(range(1, len(self.log) + 1)), "the log has no gap"
        states, standing = dict[str, list[Any]](), dict[str, list[Any]]()
        for _, decision in sorted(self.log.items()):
            if decision.action is Action.SET_STATE:
                place = json.dumps((decision.environment, decision.version, decision.task))
                states.pop(place, None)
                if decision.state is not State.ACTIVE:
                    states[place] = [decision.state, decision.sampling_weight]
            else:
                standing.pop(str(decision.trajectory), None)
                if decision.action is not Action.KEEP:
                    standing[str(decision.trajectory)] = [decision.action, decision.reward_override]
        return states, standing


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    parts = ("postgres", "redis", "migrations", "keys", "api")
    with Stack(tmp_path_factory.mktemp("feed"), parts=parts, settings=SETTINGS) as stack:
        yield stack


def disturb(desk: Desk, done: threading.Event) -> None:
    """Redis is emptied twice and killed once, the log is trimmed behind the followers, and once it gets another epoch."""
    acts = {0.2: "flush", 0.5: "epoch", 0.6: "kill", 0.8: "flush"}
    while not done.wait(0.5):
        desk.trim()
        for due in [due for due in acts if len(desk.log) > due * DECISIONS]:
            act = acts.pop(due)
            if act == "flush":
                queue.redis_client(desk.stack.redis_url).flushall()
            elif act == "kill" and (process := desk.stack.children["redis"].process):
                os.kill(process.pid, signal.SIGKILL)
            else:
                with transaction(desk.engine) as session:
                    decisions.begin_epoch(session, desk.project)


def run(stack: Stack, folder: Path) -> tuple[Desk, list[dict[str, Any]], dict[str, Any]]:
    desk, stop, goal = Desk(stack), CONTEXT.Event(), folder / "goal"
    shares = [list(range(at, FOLLOWERS, PROCESSES)) for at in range(PROCESSES)]
    plans = [Plan(stack.api_url, stack.keys["trainer"], share, folder) for share in shares]
    deaf = Plan(stack.api_url, stack.keys["trainer"], [FOLLOWERS + 1], folder, deaf=True)
    following = [start(follow, plan, stop, goal, folder / f"out-{at}") for at, plan in enumerate([*plans, deaf])]
    desk.began, done = time.time(), threading.Event()
    with ThreadPoolExecutor(WRITERS + 1) as pool:
        disturbing = pool.submit(disturb, desk, done)
        writing = [pool.submit(desk.write, at) for at in range(WRITERS)]
        try:
            for writer in writing:
                writer.result(600)
        finally:
            done.set()
        disturbing.result(60)
    desk.calm()
    with transaction(desk.engine) as session:
        head = decisions.head(session, desk.project)
    goal.with_suffix(".new").write_text(json.dumps([str(head.epoch), head.seq]))
    goal.with_suffix(".new").rename(goal)
    stop.set()
    for process in following:
        process.join(300)
        assert process.exitcode == 0
    reports = [json.loads((folder / f"out-{at}").read_text()) for at in range(PROCESSES + 1)]
    return desk, [one for share in reports[:-1] for one in share], reports[-1][0]


def latencies(desk: Desk, followers: list[dict[str, Any]], calm: bool) -> str:
    """Seconds from asking for a quarantine to a follower's refusal, of those who were connected all the while."""
    asked = {each.seq: each.asked_at for each in desk.quarantines if (each.asked_at >= desk.calm_since) is calm}
    took = [at - asked[seq] for one in followers for seq, at, up in one["told"] if seq in asked and up < asked[seq]]
    cuts = quantiles(took, n=100)
    return f"{len(asked)} quarantines heard {len(took)} times: p50 {cuts[49]:.3f} s, p99 {cuts[98]:.3f} s, longest {max(took):.3f} s"


def test_a_hundred_followers_end_where_the_log_ends_and_one_that_ignores_410_does_not(stack: Stack, tmp_path: Path) -> None:
    began = time.time()
    desk, followers, deaf = run(stack, tmp_path)
    desk.engine.dispose()
    counts = {name: sum(one["counts"][name] for one in followers) for name in followers[0]["counts"]}
    print(
        f"\n{len(desk.log)} decisions in {time.time() - began:.0f} s; {counts}\nfrom a quarantine to a refusal, while much is decided:"
        f" {latencies(desk, followers, False)}; while nothing else is: {latencies(desk, followers, True)}",
        file=sys.stderr,
    )
    states, standing = desk.fold()
    assert len(followers) == FOLLOWERS
    wrong = [at for at, one in enumerate(followers) if (one["states"], one["standing"]) != (states, standing)]
    assert wrong == []
    assert {one["seq"] for one in followers} == {max(desk.log)}
    assert all(counts[what] > 0 for what in ("reconnected", "kept", "lost", "gone", "snapshots"))
    assert (deaf["states"], deaf["standing"]) != (states, standing), "the harness sees who ignores 410"
