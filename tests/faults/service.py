"""The whole service on a folder of its own, with the means to hurt it and to ask it afterwards whether all is well."""

from __future__ import annotations

import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import psycopg
import redis

from inspector import queue
from inspector.embedded import Stack, child, services
from inspector.embedded.child import Program
from inspector.embedded.processes import Process, Rung, identify, session_of
from inspector.settings import Limits, Settings
from tests.faults import power
from tests.faults.ledger import Follower, Ledger, Producer, contradictions, lost, until

LEASE_S = 2.0
SETTINGS = Settings(lease_s=LEASE_S, heartbeat_s=0.5, sweep_s=0.5, limits=Limits(requests_per_minute=10_000_000), log_level="warning")
SPINE = ("postgres", "redis", "migrations", "keys", "worker", "beat")
SETTLED_S = 300.0  # until the last verdict; a machine may be slow
RECOVERY_S = 180.0


class Service:
    """A running service whose API writes to a disk that forgets at a power cut what was not flushed."""

    def __init__(self, stack: Stack, api: Program) -> None:
        self.stack = stack
        self.store = Path(stack.settings.store_url.removeprefix("file://"))
        self._api = api

    @property
    def url(self) -> str:
        return self.stack.api_url

    @property
    def keys(self) -> Mapping[str, str]:
        return self.stack.keys

    def start_api(self) -> None:
        self.stack.add(self._api)
        until(self.ready, RECOVERY_S, "the API is ready")

    def ready(self) -> bool:
        return self.readiness() == 200

    def readiness(self) -> int:
        """The status of /readyz; 0 where nobody answers."""
        try:
            return httpx.get(f"{self.url}/readyz", timeout=10).status_code
        except httpx.HTTPError:
            return 0

    def sql(self, query: str) -> Any:
        """One value; None while the database is away."""
        try:
            with psycopg.connect(self.stack.database_url, connect_timeout=5) as connection:
                row = connection.execute(query).fetchone()
                return row[0] if row else None
        except psycopg.OperationalError:
            return None

    # --- what may happen to it ----------------------------------------------------------------------------------------

    def kill(self, name: str) -> None:
        """SIGKILL one of its processes; the stack starts it again."""
        self._process(name).send(signal.SIGKILL)

    def pool(self) -> list[Process]:
        """The children of the audit worker."""
        until(lambda: len(session_of(self._process("worker").pid)) > 1, RECOVERY_S, "the worker has children")
        leader = self._process("worker")
        return [process for pid in session_of(leader.pid) if pid != leader.pid and (process := identify(pid))]

    def kill_pool_child(self, rng: random.Random) -> None:
        if pool := self.pool():
            rng.choice(pool).send(signal.SIGKILL)

    def stop_past_its_lease(self, rng: random.Random) -> None:
        """SIGSTOP one pool child, sometimes all, while work is leased; SIGCONT when others may have taken it."""
        pool = self.pool()
        with psycopg.connect(self.stack.database_url, connect_timeout=5, autocommit=True) as connection:
            until(
                lambda: connection.execute("SELECT FROM work WHERE until > clock_timestamp() LIMIT 1").fetchone() is not None,
                RECOVERY_S,
                "work is leased",
                0.01,
            )
        time.sleep(rng.uniform(0, 0.02))
        chosen = pool if rng.random() < 0.3 else [rng.choice(pool)]
        for process in chosen:
            process.send(signal.SIGSTOP)
        time.sleep(LEASE_S + rng.uniform(0.3, 1.5))
        for process in chosen:
            process.send(signal.SIGCONT)

    def cut_power_of_api(self) -> int:
        """SIGKILL the API and take away what it had not flushed; how many bytes. It is not started again."""
        self.stack.children.pop("api").stop()
        return power.cut(Path(self._api.environment[power.NOTES]), self.store)

    def flush_redis(self) -> None:
        until(self._flushed_redis, RECOVERY_S, "Redis can be emptied")

    def _flushed_redis(self) -> bool:
        try:
            return bool(queue.redis_client(self.stack.redis_url).flushall())
        except redis.ConnectionError:  # it was just killed
            return False

    def _process(self, name: str) -> Process:
        until(lambda: self.stack.children[name].process, RECOVERY_S, f"{name} runs")
        process = self.stack.children[name].process
        return process or self._process(name)

    # --- whether all is well ------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Wait until nothing is left to be audited."""
        until(lambda: self.sql("SELECT count(*) FROM work") == 0, SETTLED_S, "every verdict")

    def complaints(self, ledger: Ledger, followers: Sequence[Follower]) -> list[str]:
        """Everything that is not as it was promised."""
        self.settle()
        last = self.sql("SELECT last FROM feed")
        until(lambda: all(follower.last >= last or follower.faults for follower in followers), RECOVERY_S, "the followers are at the end of the feed")
        for follower in followers:
            follower.stop()
        return lost(self.url, self.keys["owner"], self.stack.database_url, self.store, ledger) + contradictions(self.stack.database_url, ledger, followers)


@contextmanager
def serving(
    folder: Path, *, settings: Settings = SETTINGS, parts: Sequence[Any] = SPINE, swapped: bool = False, before_api: Sequence[str] = ()
) -> Iterator[Service]:
    """A service on `folder`, its API behind `before_api`, a command that runs another. With `swapped`, its disk flushes a second after the commit."""
    folder.mkdir(exist_ok=True)
    with Stack(folder / "data", parts=parts, settings=settings) as stack, impatient():
        program = services.api(stack.settings, stack.data)
        environment = dict(program.environment) | power.forgetful(folder, swapped=swapped)
        command = [*before_api, *program.command]
        api = msgspec.structs.replace(program, command=command, environment=environment, ladder=(Rung(signal.SIGKILL, 10.0),))
        service = Service(stack, api)
        service.start_api()
        yield service


@contextmanager
def impatient() -> Iterator[None]:
    """Twenty deaths in two minutes are ours: what died is started again at once."""
    patience = child.LONGEST_PAUSE_S
    child.LONGEST_PAUSE_S = 0.3
    try:
        yield
    finally:
        child.LONGEST_PAUSE_S = patience


Strike = Callable[[Service, random.Random, Ledger], None]


def campaign(service: Service, strikes: Sequence[Strike], *, seed: int, trajectories: int) -> list[str]:
    """Post under strikes at seeded moments, then cut the power; what is not as it was promised at the end."""
    rng = random.Random(seed)
    ledger = Ledger()
    producers = [Producer(service.url, service.keys["trainer"], ledger, f"p{at}", seed) for at in range(3)]
    followers = [Follower(service.url, service.keys["trainer"], limit=200, wait_s=5.0), Follower(service.url, service.keys["trainer"], limit=7, wait_s=1.0)]
    began = time.monotonic()
    for thread in (*producers, *followers):
        thread.start()
    share = trajectories // (len(strikes) + 1)
    for at, strike in enumerate(strikes):
        ledger.allow(share)
        goal = len(ledger) + rng.randint(share // 4, share * 3 // 4)
        ledger.until(lambda so_far, goal=goal: len(so_far) >= goal, RECOVERY_S, f"{goal} acknowledged before moment {at}")
        time.sleep(rng.uniform(0, 0.1))
        strike(service, rng, ledger)
    ledger.allow(2 * trajectories)
    last = max(trajectories, len(ledger) + share // 4)  # the cut comes while posts are on their way
    ledger.until(lambda so_far: len(so_far) >= last, SETTLED_S, f"{last} acknowledged")
    forgotten = service.cut_power_of_api()
    for producer in producers:
        producer.stop()
    posted_s = time.monotonic() - began
    service.start_api()
    complaints = service.complaints(ledger, followers)
    again = sum(promised.status == "duplicate" for promised in ledger.acknowledged.values())
    sys.stderr.write(
        f"\n{len(strikes) + 1} moments, {len(ledger)} acknowledged ({again} of them on a second try) in {posted_s:.0f} s, {time.monotonic() - began:.0f} s"
        f" in all, answers {dict(ledger.answers)}, {forgotten} bytes forgotten, {followers[0].last} decisions, {len(complaints)} complaints\n"
    )
    unexpected = set(ledger.answers) - {0, 200, 503, 507}
    return complaints + [f"posts were answered {status}" for status in sorted(unexpected)]
