"""From audited episodes to states: what is counted, what is moved, who is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from inspector import probing, quarantine, review, settling
from inspector.check import Cause, Check, Finding, Tier, Trajectory, check
from inspector.review import JudgementOfPerson
from inspector.standing import Why
from inspector.store import environments, owner_notices, probes, standings, states
from inspector.store.owner_notices import Notice
from inspector.store.packages import Package
from inspector.store.probes import Priority
from inspector.store.session import driver, transaction
from inspector.store.standings import Place, Row
from inspector.task import Declaration, RewardDeclaration, State
from inspector.verdict import Action, Decision
from tests.audit.conftest import Desk, OpenDesk, episode

PENALISED = Declaration(reward=RewardDeclaration(min=0.0, max=1.0, penalty_min=-1.0))


@check(version=1, tier=Tier.EVIDENCE, cause=Cause.VERIFIER_DEFECT)
def contradicted(trajectory: Trajectory) -> Iterator[Finding]:
    """Its verifier contradicts itself."""
    if "contradicted" in str(trajectory.steps[0].message):
        yield Finding(message="it does")


@check(version=1, tier=Tier.EVIDENCE, cause=Cause.POLICY_EXPLOIT)
def hacked(trajectory: Trajectory) -> Iterator[Finding]:
    """It hacked."""
    if "hack" in str(trajectory.steps[0].message):
        yield Finding(message="it did")


@pytest.fixture
def desk(open_desk: OpenDesk) -> Desk:
    assert isinstance(contradicted, Check)
    assert isinstance(hacked, Check)
    return open_desk(contradicted.qualified("test"), hacked.qualified("test"))


def episodes(prefix: str, count: int, says: str = "", tasks: int = 10, **fields: Any) -> list[dict[str, Any]]:
    return [episode(f"{prefix}{at}", says=f"{says} {prefix}{at}", task={"id": f"t{at % tasks}"}, **fields) for at in range(count)]


def settle(desk: Desk, *posted: dict[str, Any]) -> set[int]:
    desk.post(*posted)
    desk.audit()
    return settling.settle(desk.engine)


def row(desk: Desk, task: str | None = None, version: str = "1") -> Row:
    with transaction(desk.engine) as session:
        id_ = environments.find(session, None, "acme/terminal", version)
        found = standings.of(session, Place(id_, environments.find_task(session, None, id_, task) if task else 0))
    assert found is not None
    return found


def moves(desk: Desk) -> list[Decision]:
    return [d for d in desk.feed() if d.action is Action.SET_STATE]


def notices(desk: Desk) -> list[Notice]:
    with transaction(desk.engine) as session:
        return [noticed.notice for noticed in owner_notices.page(session, desk.project.id, None, 100)]


def person(desk: Desk, state: State, hold: bool | None = None) -> None:
    with transaction(desk.engine) as session:
        quarantine.set_state(session, "acme/terminal", "1", None, state, author="person:mira", note="", hold=hold, project=None)


def test_defects_across_tasks_quarantine_their_version_and_the_feed_says_on_what(desk: Desk) -> None:
    assert settle(desk, *episodes("good", 40)) == set()
    assert settle(desk, *episodes("bad", 6, "contradicted")) == {desk.project.id}
    [move] = moves(desk)
    assert (move.state, move.task, move.audit_rate, move.author) == (State.QUARANTINED, None, 1.0, quarantine.POLICY)
    assert move.reasons == ("active -> quarantined: 6 defects in 46 audited episodes, score 9.66 of 6.00",)
    assert move.evidence == ("/v1/environments/acme/terminal/versions/1",)
    [told] = notices(desk)
    assert (told.kind, told.task) == ("quarantined", None)
    assert any("30 clean replays" in condition for condition in told.release)


def test_a_sick_task_goes_alone(desk: Desk) -> None:
    settle(desk, *episodes("bad", 16, "contradicted", tasks=1), *episodes("good", 60))
    assert row(desk, "t0").now.state is State.QUARANTINED
    assert row(desk).now.state is not State.QUARANTINED


def test_what_looks_odd_is_probed_where_it_is_registered_and_the_probe_says_why(desk: Desk) -> None:
    settle(desk, *episodes("good", 10, tasks=2))
    with transaction(desk.engine) as session:
        version = environments.find(session, None, "acme/terminal", "1")
        probing.register(session, desk.project.id, version, Package("0" * 64, "auto"))
    settle(desk, *episodes("bad", 6, "contradicted", tasks=1))
    [move, *_] = moves(desk)
    with transaction(desk.engine) as session:
        [probe] = probes.of_version(session, desk.project.id, version, None, 10)
    assert (probe.asked.tasks, probe.asked.priority, probe.asked.budget.wall_s) == (move.task and [move.task], Priority.PROBE, 3600.0)
    assert probe.note == f"asked for by the service: {move.reasons[0].partition(': ')[2]}"


def test_another_audit_counts_nothing_twice_and_a_persons_word_is_taken_back(desk: Desk) -> None:
    settle(desk, *episodes("bad", 2, "contradicted"), *episodes("good", 3))
    before = row(desk).evidence
    with transaction(desk.engine) as session:
        driver(session).execute("INSERT INTO work (project, key) SELECT project, key FROM trajectory")
    desk.audit()
    assert (row(desk).evidence.episodes, row(desk).evidence.defects) == (before.episodes, before.defects) == (5, 2)
    with transaction(desk.engine) as session:
        review.judge(session, desk.project.id, desk.key("bad0"), "mira", JudgementOfPerson.ACCEPT, None, "")
    assert row(desk).evidence.defects == 1


@pytest.mark.parametrize(
    ("declared", "run", "sampled", "state"),
    [
        (PENALISED, "enforced", None, State.WATCH),  # they lose by themselves
        (PENALISED, "enforced", 0.02, State.QUARANTINED),  # a twin that nobody looked at would win
        (PENALISED, "observed", None, State.QUARANTINED),
        (Declaration(), "enforced", None, State.QUARANTINED),  # excluded: no value is low enough
    ],
)
def test_exploits_count_unless_they_lose_by_themselves(desk: Desk, declared: Declaration, run: str, sampled: float | None, state: State) -> None:
    desk.declare(declared)
    desk.enforce("enforced")
    fields = {"run": {"id": run}, **({"sampled": sampled} if sampled else {})}
    settle(desk, *episodes("good", 20, tasks=1, **fields), *episodes("x", 3, "hack", tasks=1, **fields))
    assert row(desk, "t0").now.state is state
    assert row(desk, "t0").now.why is Why.EXPLOITS


def test_exploits_under_three_of_its_tasks_quarantine_a_version(desk: Desk) -> None:
    settle(desk, *episodes("good", 200), *episodes("x", 2, "hack"))
    assert row(desk).now.state is State.WATCH
    settle(desk, *episodes("y", 3, "hack"))
    assert (row(desk).now.state, row(desk).now.why) == (State.QUARANTINED, Why.EXPLOITS)


def test_what_a_person_holds_stays_until_it_is_handed_back(desk: Desk) -> None:
    settle(desk, *episodes("good", 1))
    person(desk, State.WATCH)
    settle(desk, *episodes("bad", 20, "contradicted"))
    assert (row(desk).now.state, row(desk).now.held) == (State.WATCH, True)
    person(desk, State.ACTIVE)
    settle(desk, *episodes("worse", 20, "contradicted"))
    assert row(desk).now.state is State.QUARANTINED


def version(number: int, count: int, says: str = "") -> Sequence[dict[str, Any]]:
    return episodes(f"{says}-v{number}-", count, says, environment={"id": "acme/terminal", "version": str(number)})


def test_of_two_versions_that_break_in_an_hour_a_person_is_asked_for_the_second(desk: Desk) -> None:
    for number in (1, 2):
        desk.post(*version(number, 10), *version(number, 10, "contradicted"))
    desk.audit()
    settling.settle(desk.engine)
    assert sorted(row(desk, version=str(number)).now.state for number in (1, 2)) == [State.QUARANTINED, State.WATCH]
    assert sorted(notice.kind for notice in notices(desk) if notice.task is None) == ["asked", "quarantined"]
    settling.settle(desk.engine)
    assert [notice.kind for notice in notices(desk)].count("asked") == 1


def test_clean_replays_release_into_probation_and_its_episodes_into_active(desk: Desk) -> None:
    settle(desk, *episodes("bad", 6, "contradicted"))
    place = row(desk).place
    for _ in range(30):
        with transaction(desk.engine) as session:
            standings.replayed(session, place.environment_version, 0, clean=True)
    settling.settle(desk.engine)
    assert row(desk).now.state is State.PROBATION
    with transaction(desk.engine) as session:
        assert states.of_all(session, place.environment_version) == (State.PROBATION, 0.5)
    settle(desk, *episodes("good", 200))
    assert row(desk).now.state is State.ACTIVE
    assert [move.state for move in moves(desk) if move.task is None] == [State.QUARANTINED, State.PROBATION, State.ACTIVE]


def test_the_owner_of_a_quarantine_that_nobody_looked_at_is_reminded(desk: Desk) -> None:
    settle(desk, *episodes("bad", 6, "contradicted"))
    long_ago = datetime.now(UTC) - timedelta(days=15)
    with transaction(desk.engine) as session:
        driver(session).execute("UPDATE standing SET since = %s, due_at = %s", (long_ago, long_ago))
    settling.settle(desk.engine)
    settling.settle(desk.engine)
    assert row(desk).now.state is State.QUARANTINED
    assert [notice.kind for notice in notices(desk) if notice.task is None] == ["reminded", "quarantined"]
