"""A person's word stands above the policy's, whatever was decided before and whatever comes after."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from inspector import review
from inspector.errors import BadSubmission, Unknown
from inspector.review import JudgementOfPerson
from inspector.store import decisions, reviews, triage, verdicts, work
from inspector.store.session import driver, transaction
from inspector.verdict import Action, Cause, Decision, Verdict
from tests.audit.conftest import FAILED, Desk, episode

ACCEPT, QUARANTINE, OVERRIDE = JudgementOfPerson


def judge(desk: Desk, id_: str, judgement: JudgementOfPerson, reward: float | None = None, person: str = "mira", cause: Cause | None = None) -> Decision:
    key = desk.key(id_)
    with transaction(desk.engine) as session:
        return review.judge(session, desk.project.id, key, person, judgement, reward, "seen", cause)


def again(desk: Desk, id_: str) -> None:
    key = desk.key(id_)
    with transaction(desk.engine) as session:
        work.add_trajectories(session, desk.project.id, [key])
    desk.audit()


@pytest.mark.parametrize(
    ("judgement", "reward", "verdict", "action"),
    [
        (ACCEPT, None, Verdict.ACCEPT, Action.KEEP),
        (QUARANTINE, None, Verdict.QUARANTINE, Action.EXCLUDE),
        (OVERRIDE, 0.0, Verdict.QUARANTINE, Action.OVERRIDE_REWARD),
    ],
)
@pytest.mark.parametrize("fault", [FAILED, None], ids=["of what was excluded", "of what was kept"])
def test_a_judgement_is_final_logged_and_outlives_other_audits(
    desk: Desk, fault: dict[str, object] | None, judgement: JudgementOfPerson, reward: float | None, verdict: Verdict, action: Action
) -> None:
    desk.post(episode("a", verifier=fault))
    desk.audit()
    logged = len(desk.feed())
    decision = judge(desk, "a", judgement, reward)
    assert (decision.action, decision.final, decision.author, decision.supersedes) == (action, True, "person:mira", logged or None)
    assert desk.feed(logged) == [decision]
    again(desk, "a")
    stored = desk.stored("a")
    assert (stored.verdict, stored.action, stored.reward_override, stored.by_person, stored.open) == (verdict, action, reward, True, False)
    assert stored.seq == decision.seq
    assert len(desk.feed()) == logged + 1


def test_a_judgement_takes_it_off_the_triage_list(desk: Desk) -> None:
    desk.post(episode("a", verifier=FAILED), episode("b", verifier=FAILED))
    desk.audit()
    judge(desk, "a", QUARANTINE)
    with transaction(desk.engine) as session:
        assert [place.key for place in triage.page(session, desk.project.id, None, 10)] == [desk.key("b")]


def test_what_was_not_audited_yet_cannot_be_judged(desk: Desk) -> None:
    desk.post(episode("a"))
    with pytest.raises(Unknown):
        judge(desk, "a", ACCEPT)


def test_a_reward_without_an_override_is_refused(desk: Desk) -> None:
    desk.post(episode("a"))
    desk.audit()
    with pytest.raises(BadSubmission):
        judge(desk, "a", ACCEPT, 1.0)
    assert desk.feed() == []


@pytest.mark.parametrize(("said", "decided"), [(Cause.ENVIRONMENT_DEFECT, Cause.ENVIRONMENT_DEFECT), (None, Cause.VERIFIER_DEFECT)])
def test_a_cause_that_a_person_names_stands_above_that_of_the_checks(desk: Desk, said: Cause | None, decided: Cause) -> None:
    desk.post(episode("a", verifier=FAILED))
    desk.audit()
    assert desk.stored("a").cause is Cause.VERIFIER_DEFECT
    assert judge(desk, "a", QUARANTINE, cause=said).cause is decided
    assert desk.stored("a").cause is decided
    with transaction(desk.engine) as session:
        assert [r.cause for r in reviews.of(session, desk.project.id, desk.key("a"))] == [said]


def test_what_is_accepted_has_no_cause(desk: Desk) -> None:
    desk.post(episode("a", verifier=FAILED))
    desk.audit()
    with pytest.raises(BadSubmission) as refused:
        judge(desk, "a", ACCEPT, cause=Cause.ANOMALY)
    assert refused.value.path == "$.cause"
    assert judge(desk, "a", ACCEPT).cause is None


def test_each_trajectory_that_was_judged_counts_once_and_only_in_its_project(desk: Desk) -> None:
    desk.post(episode("a", verifier=FAILED), episode("b", verifier=FAILED))
    desk.audit()
    begun = datetime.now(UTC) - timedelta(minutes=1)
    for id_, judgement in (("a", QUARANTINE), ("a", ACCEPT), ("b", ACCEPT)):
        judge(desk, id_, judgement)
    with transaction(desk.engine) as session:
        assert reviews.count_since(session, desk.project.id, begun, 10) == 2
        assert reviews.count_since(session, desk.project.id, begun, 1) == 1
        assert reviews.count_since(session, desk.project.id + 1, begun, 10) == 0
        assert reviews.count_since(session, desk.project.id, datetime.now(UTC) + timedelta(minutes=1), 10) == 0


def test_people_who_judge_at_once_are_put_in_order(desk: Desk) -> None:
    """Each supersedes the one before; the last stands, and each is kept with its author."""
    desk.post(episode("a", verifier=FAILED))
    desk.audit()
    people = [f"p{n}" for n in range(6)]
    together = threading.Barrier(len(people))

    def act(person: str) -> Decision:
        together.wait(60)
        return judge(desk, "a", QUARANTINE if person in people[::2] else ACCEPT, person=person)

    with ThreadPoolExecutor(len(people)) as pool:
        list(pool.map(act, people))
    feed = desk.feed()
    assert [d.seq for d in feed] == list(range(1, 8))
    assert [d.supersedes for d in feed] == [None, *range(1, 7)]
    assert (desk.stored("a").action, desk.stored("a").seq) == (feed[-1].action, 7)
    key = desk.key("a")
    with transaction(desk.engine) as session:
        assert [r.person for r in sorted(reviews.of(session, desk.project.id, key), key=lambda r: r.seq)] == [
            d.author.removeprefix("person:") for d in feed[1:]
        ]
        assert decisions.history(session, desk.project.id, key) == feed


def test_a_judgement_that_waits_for_another_audit_stands_above_it(desk: Desk) -> None:
    desk.post(episode("a", verifier=FAILED))
    desk.audit()
    key = desk.key("a")
    with ThreadPoolExecutor(1) as pool:
        with transaction(desk.engine) as auditing:
            rows = verdicts.replace(auditing, [key])
            judged = pool.submit(judge, desk, "a", ACCEPT)
            while not judged.done() and not _somebody_waits(desk):
                pass
            verdicts.add(auditing, list(rows.values()), [])
        assert judged.result(60).action is Action.KEEP
    assert (desk.stored("a").action, desk.stored("a").by_person) == (Action.KEEP, True)


def _somebody_waits(desk: Desk) -> bool:
    with transaction(desk.engine) as session:
        return driver(session).execute("SELECT FROM pg_locks WHERE NOT granted").fetchone() is not None


def test_a_judgement_of_a_member_decides_its_group_anew(desk: Desk) -> None:
    desk.post(*(episode(f"m{n}", group={"id": "g", "index": n, "size": 3}) for n in range(3)))
    desk.audit()
    judge(desk, "m0", QUARANTINE)
    judge(desk, "m1", QUARANTINE)
    desk.audit()
    assert desk.stored("m2").action is Action.EXCLUDE, "it is alone now"
    judge(desk, "m0", ACCEPT)
    desk.audit()
    assert [desk.stored(f"m{n}").action for n in range(3)] == [Action.KEEP, Action.EXCLUDE, Action.KEEP]
