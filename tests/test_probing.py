"""Workers, owners and people at once: no work is handed out twice, nothing waits for ever, and every task is counted once."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from sqlalchemy import Engine

from inspector import probing
from inspector.assignments import Assignment, Listing, WorkReport
from inspector.audit.stops import Watch
from inspector.errors import Conflict
from inspector.probe.words import Evidence, Outcome, TaskReport
from inspector.store import decisions, environments, probes, projects
from inspector.store.environments import EnvironmentName
from inspector.store.packages import Package
from inspector.store.probes import Asked, Budget, Priority, Probe, ProbeState
from inspector.store.session import connect, driver, transaction
from inspector.worker.house import put_on_watch

WORKERS = 6
NAME = EnvironmentName("acme/rows", "1")


@pytest.fixture
def engine(database: str) -> Iterator[Engine]:
    engine = connect(database, pool_size=WORKERS + 4)
    yield engine
    engine.dispose()


@pytest.fixture
def project(engine: Engine) -> int:
    """Owns a registered version."""
    with transaction(engine) as session:
        projects.create(session, "acme")
        project, _ = projects.by_name(session, "acme")
        version = environments.ensure(session, project, [NAME])[NAME]
        probing.register(session, project, version, Package("0" * 64, "auto"))
    return project


def ask(engine: Engine, project: int, **budget: float) -> UUID:
    with transaction(engine) as session:
        return probing.ask(session, project, *NAME, Asked("quick", None, Priority.PROBE, Budget(**budget)))


def find(engine: Engine, probe: UUID) -> Probe:
    with transaction(engine) as session:
        return probes.find(session, None, probe)


def answer(assignment: Assignment, tasks: int) -> WorkReport:
    if assignment.task is None:
        return WorkReport(listing=Listing(content_version="c", verifier_digest="d", tasks=[f"t{at}" for at in range(tasks)]))
    outcome = (Outcome.EXPLOITABLE, Outcome.SOUND, Outcome.FLAKY)[hash(assignment.task) % 3]
    evidence = Evidence(outcome=outcome, probe="p", claim="So it is.", proof="x")
    return WorkReport(task=TaskReport(task=assignment.task, outcomes=(outcome,), evidence=(evidence,), cpu_s=1.0, wall_s=1.0))


def work_off(engine: Engine, tasks: int, handed_out: list[tuple[int, int]], done: threading.Event) -> None:
    """A worker that now and then dies before it reports."""
    rng = random.Random()
    while not done.is_set():
        with transaction(engine) as session:
            assignment = probing.claim(session, 0.05 if rng.random() < 0.2 else 60.0)
        if assignment is None:
            done.wait(0.02)
            continue
        handed_out.append((assignment.work, assignment.lease))
        if assignment.lease_s < 1:
            done.wait(0.1)
        try:
            with transaction(engine) as session:
                probing.report(session, assignment.work, assignment.lease, answer(assignment, tasks))
        except Conflict:
            continue  # its lease went to another


def test_many_workers_report_every_task_once(engine: Engine, project: int) -> None:
    made = [ask(engine, project), ask(engine, project)]
    handed_out: list[tuple[int, int]] = []
    over = threading.Event()
    with ThreadPoolExecutor(WORKERS) as pool:
        workers = [pool.submit(work_off, engine, 40, handed_out, over) for _ in range(WORKERS)]
        while not all(find(engine, probe).state is ProbeState.DONE for probe in made):
            assert not any(worker.done() for worker in workers), [worker.exception() for worker in workers if worker.done()]
            over.wait(0.05)
        over.set()
    assert max(Counter(handed_out).values()) == 1, "each lease is one worker's alone"
    for probe in made:
        found = find(engine, probe)
        assert (found.total, found.closed, found.note) == (40, 40, "")
        with transaction(engine) as session:
            counted = sum(probes.counts(session, probe).values())
        assert counted == 40
    with transaction(engine) as session:
        head = decisions.head(session, project)
        logged = driver(session).execute("SELECT count(*), max(seq) FROM decision").fetchone()
        states = driver(session).execute("SELECT count(*) FROM task WHERE state <> 'active'").fetchone()
    assert logged == (head.seq, head.seq)
    assert states == (head.seq,), "each task was moved once, however often it was probed"


def test_probes_that_are_cancelled_while_workers_report_come_to_an_end(engine: Engine, project: int) -> None:
    over = threading.Event()
    with ThreadPoolExecutor(WORKERS) as pool:
        workers = [pool.submit(work_off, engine, 12, [], over) for _ in range(WORKERS)]
        for _ in range(12):
            probe = ask(engine, project, cpu_s=random.choice([5.0, 1e6]))
            over.wait(random.random() * 0.2)
            try:
                with transaction(engine) as session:
                    probing.cancel(session, project, probe)
            except Conflict:
                assert find(engine, probe).state is ProbeState.DONE
        while True:
            with transaction(engine) as session:
                left = driver(session).execute("SELECT count(*) FROM probe_work WHERE closed_at IS NULL").fetchone()
            if left == (0,):
                break
            assert not any(worker.done() for worker in workers), [worker.exception() for worker in workers if worker.done()]
            over.wait(0.05)
        over.set()
    with transaction(engine) as session:
        wrong = driver(session).execute("SELECT p.* FROM probe p WHERE ended_at IS NULL OR closed > total").fetchall()
    assert wrong == []


def test_what_is_put_on_watch_is_probed_once_where_it_is_registered(engine: Engine, project: int) -> None:
    class Silent:
        def wake(self, projects: set[int]) -> None:
            pass

    with transaction(engine) as session:
        environments.ensure(session, project, [EnvironmentName("acme/other", "1")])
    for environment in (NAME.environment, "acme/other"):
        put_on_watch(engine, Silent(), Watch(environment, "1", "builtin/x", 0.5))  # type: ignore[arg-type]
    with transaction(engine) as session:
        [made] = probes.page(session, project, None, 10)
        assert (made.environment, made.asked) == (NAME.environment, Asked("quick", None, Priority.PROBE, Budget(None, 3600.0)))
        assert made.note == "asked for by the service: builtin/x caused 50% of a run's last decisions"
        assert probing.ask_unasked(session, *NAME, "again") is None, "one is under way"
        probing.cancel(session, project, made.id)
        assert probes.find(session, None, probing.ask_unasked(session, *NAME, "of one", task="a") or made.id).asked.tasks == ["a"]


def test_of_many_who_see_a_burst_at_once_one_asks_for_a_probe(engine: Engine, project: int) -> None:
    def ask_at_once(at: int) -> UUID | None:
        with transaction(engine) as session:
            return probing.ask_unasked(session, *NAME, f"burst {at}")

    with ThreadPoolExecutor(WORKERS) as threads:
        made = list(threads.map(ask_at_once, range(WORKERS)))
    assert len([one for one in made if one is not None]) == 1
