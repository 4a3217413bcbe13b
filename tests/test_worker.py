"""The tasks of a worker, on a real Postgres: what a message makes it do, and which bells it rings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from inspector import catalog
from inspector.check import Cause, Check, Finding, Group, Tier, check
from inspector.errors import Unavailable
from inspector.queue import LATE, QUEUES
from inspector.settings import Settings
from inspector.store.session import driver, transaction
from inspector.verdict import Action, Outcome
from inspector.worker import tasks
from inspector.worker.house import House
from tests.audit.conftest import Desk, OpenDesk, episode


@check(version=1, tier=Tier.EVIDENCE, cause=Cause.VERIFIER_DEFECT)
def pays_alike(group: Group) -> Iterator[Finding]:
    """Every rollout was paid the same."""
    if len({t.reward for t in group.trajectories}) == 1:
        yield Finding(message="all alike")


@pytest.fixture
def desk(open_desk: OpenDesk, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """With a worker beside it whose only check is a late one."""
    assert isinstance(pays_alike, Check)
    opened = open_desk(pays_alike.qualified("test"))
    monkeypatch.setenv("INSPECTOR_BROKER_DIR", str(tmp_path / "broker"))
    monkeypatch.setattr(catalog, "load", lambda: catalog.Catalog({one.name: one for one in opened.checks}))
    celery = tasks.queue.application(Settings())
    house = House.open(celery, Settings(database_url=database, store_url=f"file://{opened.root}", group_quiet_s=0.0, late_deadline_s=0.0), alarms=False)
    monkeypatch.setattr(tasks, "_house", house)
    yield opened
    house.close()
    celery.close()


def rung(tmp_path: Path) -> set[str]:
    """Names of the queues in which a message waits."""
    names = {path.name for path in (tmp_path / "broker").iterdir() if path.is_file()}
    return {queue for queue in QUEUES.values() if any(queue in name for name in names)}


def pair() -> list[dict[str, object]]:
    return [episode(f"m{at}", group={"id": "g", "index": at, "size": 2}, verifier=None) for at in range(2)]


def test_a_late_check_runs_when_its_own_queue_is_rung(desk: Desk, tmp_path: Path) -> None:
    desk.post(*pair())
    tasks.audit()
    assert desk.stored("m0").outcomes == (Outcome.PENDING,)
    assert "late" in rung(tmp_path)
    tasks.celery.tasks[LATE]()
    assert (desk.stored("m0").outcomes, desk.stored("m0").action) == ((Outcome.FLAGGED,), Action.EXCLUDE)


def test_the_sweep_ends_what_no_late_worker_answered_in_time(desk: Desk) -> None:
    desk.post(*pair())
    tasks.audit()
    tasks.sweep()
    assert (desk.stored("m0").outcomes, desk.stored("m0").final) == ((Outcome.NOT_ASSESSED,), True)


def test_the_sweep_rings_although_late_checks_cannot_be_given_up(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> int:
        raise Unavailable("the database is away")

    desk.post(*pair())
    monkeypatch.setattr(tasks.house().late, "give_up", fails)
    with pytest.raises(Unavailable):
        tasks.sweep()
    assert "audit" in rung(tmp_path)


def test_the_sweep_keeps_what_a_dead_worker_promised(desk: Desk) -> None:
    desk.post(episode("a", says="the same", reward=1.0, verifier=None), episode("b", says="the same", reward=0.0, verifier=None))
    with transaction(desk.engine) as session:
        driver(session).execute("DELETE FROM work WHERE key = %s", (desk.key("b"),))
    tasks.audit()
    with transaction(desk.engine) as session:
        driver(session).execute("INSERT INTO work (project, key) VALUES (%s, %s)", (desk.project.id, desk.key("b")))
    auditor = tasks.house().auditor
    claims = auditor.claim()
    auditor._close(claims, auditor._inspect(claims))  # and then it died
    with transaction(desk.engine) as session:
        driver(session).execute("UPDATE look_back SET promised_at = now() - interval '1 hour'")
    tasks.sweep()
    assert tasks.house().auditor.drain() == 2, "both are audited once more"
