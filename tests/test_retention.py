"""What is forgotten with time, and what is not; the clock is the test's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from inspector import retention, review
from inspector.audit import LateAuditor
from inspector.errors import Gone, Unknown
from inspector.queue import RETAIN, application
from inspector.retention import Forgotten, Keeping
from inspector.review import JudgementOfPerson
from inspector.settings import Settings
from inspector.store import decisions, reviews, trajectories
from inspector.store.segments import SegmentReader
from inspector.store.session import driver, transaction
from inspector.verdict import Action
from tests.audit.conftest import FAILED, Desk, OpenDesk, episode
from tests.audit.test_late import PAYS

NOW = datetime.now(UTC)
FOR_EVER = Keeping(feed_horizon=1_000_000, days=0)


def forget(desk: Desk, keeping: Keeping, later: timedelta = timedelta()) -> Forgotten:
    return retention.forget(desk.engine, desk.root, keeping, NOW + later)


def files(desk: Desk) -> list[Path]:
    return list(desk.root.rglob("*.seg"))


def test_nothing_is_forgotten_unless_the_operator_says_so(desk: Desk) -> None:
    desk.post(episode("a", verifier=FAILED))
    desk.audit()
    assert forget(desk, FOR_EVER, timedelta(days=10_000)) == Forgotten(0, 0, 0)


def test_decisions_behind_the_horizon_are_forgotten_but_for_those_that_stand(desk: Desk) -> None:
    desk.post(*(episode(f"{at}", verifier=FAILED) for at in range(6)))
    desk.audit()
    for at in (0, 1):
        with transaction(desk.engine) as session:
            review.judge(session, desk.project.id, desk.key(f"{at}"), "mira", JudgementOfPerson.ACCEPT, None, "")
    assert forget(desk, FOR_EVER._replace(feed_horizon=3)).decisions == 2, "the two that were superseded"
    with transaction(desk.engine) as session:
        with pytest.raises(Gone):
            decisions.page(session, desk.project.id, None, 4, 10)
        assert [d.seq for d in decisions.page(session, desk.project.id, None, 5, 10)[1]] == [6, 7, 8]
        assert [d.trajectory for d in decisions.standing(session, desk.project.id, 8, 0, 10)] == ["2", "3", "4", "5"]
    assert forget(desk, FOR_EVER._replace(feed_horizon=3)).decisions == 0


def test_an_old_log_is_forgotten_slice_by_slice(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "SLICE", 2)
    desk.post(*(episode(f"{at}", verifier=FAILED) for at in range(7)))
    desk.audit()
    with transaction(desk.engine) as session:
        driver(session).execute("UPDATE verdict SET seq = NULL")
    assert forget(desk, FOR_EVER._replace(feed_horizon=1)).decisions == 6


def test_old_trajectories_go_with_their_segments_and_young_ones_stay(open_desk: OpenDesk) -> None:
    desk, other = open_desk(), open_desk(name="beta")
    for one in (desk, other):
        one.post(episode("a", verifier=FAILED), episode("b"))
        one.audit()
    key = desk.key("a")
    with transaction(desk.engine) as session:
        review.judge(session, desk.project.id, key, "mira", JudgementOfPerson.QUARANTINE, None, "")
    thirty = Keeping(1_000_000, 30)
    assert forget(desk, thirty, timedelta(days=29)) == Forgotten(0, 0, 0)
    assert len(files(desk)) == 2
    assert forget(desk, thirty, timedelta(days=32)) == Forgotten(0, 4, 2)
    assert files(desk) == []
    with transaction(desk.engine) as session:
        with pytest.raises(Unknown):
            trajectories.find(session, desk.project.id, key)
        for table in ("trajectory", "verdict", "finding", "patch"):
            assert driver(session).execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
        assert len(reviews.of(session, desk.project.id, key)) == 1, "a label outlives what it is of"
    assert [d.action for d in desk.feed()] == [Action.EXCLUDE] * 2, "numbers of the log have no gap"


def test_the_same_id_may_be_posted_again_when_it_was_forgotten(desk: Desk) -> None:
    desk.post(episode("a"))
    desk.audit()
    desk.intake.writer.close()  # its clock is not the one that was set forward
    forget(desk, Keeping(10, 30), timedelta(days=32))
    [receipt] = desk.post(episode("a", reward=0.5, verifier=None))
    assert receipt.status == "created"
    desk.audit()
    with transaction(desk.engine) as session:
        subject = trajectories.find(session, desk.project.id, desk.key("a"))
    assert b'"a"' in SegmentReader(desk.root).line(desk.project.uuid, subject.location)


def test_what_waits_for_its_audit_stays_with_its_segment(desk: Desk) -> None:
    desk.post(episode("a"), episode("b"))
    with transaction(desk.engine) as session:
        driver(session).execute("DELETE FROM work WHERE key = %s", (desk.key("b"),))
    assert forget(desk, Keeping(10, 1), timedelta(days=5)) == Forgotten(0, 1, 0)
    assert desk.audit() == 1
    assert forget(desk, Keeping(10, 1), timedelta(days=5)) == Forgotten(0, 1, 1)


def test_what_waits_for_late_checks_stays_until_they_have_spoken(open_desk: OpenDesk) -> None:
    """They would leave a verdict of what is gone."""
    desk = open_desk(PAYS)
    desk.post(*(episode(f"m{at}", group={"id": "g", "index": at, "size": 2}) for at in range(2)))
    desk.audit()
    assert forget(desk, Keeping(10, 1), timedelta(days=5)) == Forgotten(0, 0, 0)
    LateAuditor(desk.auditor()).drain()
    assert forget(desk, Keeping(10, 1), timedelta(days=5)).trajectories == 2


def test_beat_asks_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INSPECTOR_BROKER_DIR", str(tmp_path))
    entry = application(Settings(retain_every_s=60)).conf.beat_schedule["retain"]
    assert (entry["task"], entry["schedule"]) == (RETAIN, 60)
