"""Advice to go back: when it is given, how often, and what ends it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from inspector import review
from inspector.contamination import advise_due, report
from inspector.errors import Conflict
from inspector.review import JudgementOfPerson
from inspector.store import decisions
from inspector.store.session import transaction
from inspector.store.used import Told, Use
from inspector.task import Declaration, RewardDeclaration
from inspector.verdict import Action, Cause, Decision, Scope
from tests.audit.conftest import FAILED, Desk, OpenDesk, episode

SHARE = 0.02
RUN = "r"


def update(desk: Desk, step: int, *used: str | tuple[str, float], attempt: str = "", before: int | None = None, saved: bool = False) -> bool:
    """Step n makes version n of the one before, and uses these with a weight and a reward of 1 unless said otherwise."""
    uses = [Use(one, 1.0, 1.0) if isinstance(one, str) else Use(one[0], 1.0, one[1]) for one in used]
    told = Told(step, attempt, step - 1 if before is None else before, step, f"/saved/{step}" if saved else None, uses, msgspec.json.encode([step, uses]))
    with transaction(desk.engine) as session:
        return report(session, desk.project.id, RUN, told, share=SHARE)


def due(desk: Desk) -> set[int]:
    return advise_due(desk.engine, share=SHARE)


def advice(desk: Desk) -> list[Decision]:
    return [decision for decision in desk.feed() if decision.scope is Scope.RUN]


def post(desk: Desk, ids: Sequence[str], **fields: Any) -> None:
    desk.post(*(episode(id_, run={"id": RUN}, **fields) for id_ in ids))


def judge(desk: Desk, id_: str, judgement: JudgementOfPerson = JudgementOfPerson.QUARANTINE, cause: Cause | None = Cause.POLICY_EXPLOIT) -> None:
    with transaction(desk.engine) as session:
        review.judge(session, desk.project.id, desk.key(id_), "mira", judgement, None, "", cause if judgement is JudgementOfPerson.QUARANTINE else None)


@pytest.fixture
def ready(desk: Desk) -> Desk:
    """Ten good trajectories and three whose verifier paid for what failed, audited."""
    post(desk, [f"g{n}" for n in range(10)])
    post(desk, ["b0", "b1", "b2"], verifier=FAILED)
    desk.audit()
    assert desk.stored("b0").cause is Cause.VERIFIER_DEFECT
    return desk


def test_what_is_known_when_the_update_is_told_is_answered_at_once(ready: Desk) -> None:
    for step in (1, 2, 3):
        update(ready, step, "g0", "g1", saved=step != 2)
    assert advice(ready) == []
    update(ready, 4, "g2", "g3", "g4", "b0")
    [told] = advice(ready)
    assert (told.action, told.cause, told.run, told.author, told.final) == (Action.ADVISE_ROLLBACK, Cause.VERIFIER_DEFECT, RUN, "policy:rollback", True)
    assert told.rollback is not None
    assert (told.rollback.policy_version, told.rollback.checkpoint, told.rollback.last_clean) == (3, "/saved/3", 3)
    assert (told.rollback.first_step, told.rollback.last_step, told.rollback.updates, told.rollback.rows, told.rollback.share) == (4, 4, 1, 1, 0.25)
    assert told.reasons == ("update 4 drew up to 25.0% of the absolute reward from verifier_defect in acme/terminal@1",)


def test_what_is_learnt_later_is_answered_when_it_is_learnt(desk: Desk) -> None:
    post(desk, ["g0", "g1"])
    post(desk, ["b0"], verifier=FAILED)
    update(desk, 1, "g0", saved=True)
    update(desk, 2, "g1", "b0", saved=True)
    update(desk, 3, "g0")
    assert due(desk) == set()
    desk.audit()
    assert due(desk) == {desk.project.id}
    [told] = advice(desk)
    assert told.rollback is not None
    assert (told.rollback.policy_version, told.rollback.first_step, told.rollback.undone) == (1, 2, 2)
    assert due(desk) == set()


def test_what_was_used_before_it_was_posted_is_recognised(desk: Desk) -> None:
    update(desk, 1, "g0", "b0")
    assert advice(desk) == []
    post(desk, ["g0"])
    post(desk, ["b0"], verifier=FAILED)
    desk.audit()
    due(desk)
    [told] = advice(desk)
    assert told.rollback is not None
    assert (told.rollback.policy_version, told.rollback.checkpoint, told.rollback.share) == (0, None, 0.5)


def test_an_incident_is_told_once_and_a_second_one_after_going_back(ready: Desk) -> None:
    update(ready, 1, "g0", saved=True)
    update(ready, 2, "b0")
    update(ready, 3, "b1")
    update(ready, 4, "g1")
    assert len(advice(ready)) == 1
    update(ready, 2, "g2", attempt="second", before=1)
    update(ready, 3, "g3", attempt="second")
    first, followed = advice(ready)
    assert (followed.action, followed.supersedes, followed.reasons) == (Action.KEEP, first.seq, ("the run went on from version 1",))
    update(ready, 4, "b2", attempt="second")
    *_, second = advice(ready)
    assert second.supersedes is None
    assert second.rollback is not None
    assert (second.rollback.policy_version, second.rollback.last_clean, second.rollback.first_step, second.rollback.attempt) == (1, 3, 4, "second")


def test_another_source_of_the_same_incident_is_told(ready: Desk) -> None:
    update(ready, 1, "g0", saved=True)
    update(ready, 2, "b0")
    judge(ready, "g5")
    update(ready, 3, "g5", "g1")
    first, second = advice(ready)
    assert second.supersedes == first.seq
    assert second.cause is None
    assert "policy_exploit in acme/terminal@1; verifier_defect in acme/terminal@1" in second.reasons[0]


def test_advice_reaches_further_back_when_an_earlier_update_turns_out_bad(ready: Desk) -> None:
    for step, used in enumerate(("g0", "g1", "g2", "b0"), 1):
        update(ready, step, used, saved=True)
    judge(ready, "g1", cause=Cause.VERIFIER_DEFECT)
    assert due(ready) == {ready.project.id}
    first, second = advice(ready)
    assert (first.rollback and first.rollback.checkpoint, second.rollback and second.rollback.checkpoint) == ("/saved/3", "/saved/1")
    judge(ready, "g2", cause=Cause.VERIFIER_DEFECT)
    assert due(ready) == set(), "that checkpoint is named already"


def test_advice_is_taken_back_with_what_it_rested_on(ready: Desk) -> None:
    update(ready, 1, "g0", "b0")
    judge(ready, "b0", JudgementOfPerson.ACCEPT)
    due(ready)
    first, second = advice(ready)
    assert (second.action, second.supersedes, second.rollback) == (Action.KEEP, first.seq, None)
    with transaction(ready.engine) as session:
        assert not [d for d in decisions.standing(session, ready.project.id, 100, 0, 100) if d.scope is Scope.RUN]


def test_a_share_at_the_limit_is_no_incident(desk: Desk) -> None:
    post(desk, [f"g{n}" for n in range(49)])
    post(desk, ["b0"], verifier=FAILED)
    desk.audit()
    update(desk, 1, *(f"g{n}" for n in range(49)), "b0")
    assert advice(desk) == []
    update(desk, 2, *(f"g{n}" for n in range(48)), "b0")
    assert len(advice(desk)) == 1


def test_the_posted_speak_for_those_that_were_not(ready: Desk) -> None:
    update(ready, 1, "g0", "b0", *(f"unposted{n}" for n in range(98)))
    [told] = advice(ready)
    assert told.rollback is not None
    assert told.rollback.share == 0.5


def test_what_was_used_as_decided_is_not_bad(open_desk: OpenDesk) -> None:
    desk = open_desk()
    desk.declare(Declaration(reward=RewardDeclaration(min=0, max=1, penalty_min=-1)))
    post(desk, ["g0", "b0"])
    desk.audit()
    with transaction(desk.engine) as session:
        review.judge(session, desk.project.id, desk.key("b0"), "mira", JudgementOfPerson.OVERRIDE, -1.0, "", Cause.POLICY_EXPLOIT)
    update(desk, 1, "g0", ("b0", -1.0))
    assert advice(desk) == []
    update(desk, 2, "g0", ("b0", 1.0))
    assert len(advice(desk)) == 1


def test_infrastructure_is_no_reason_to_go_back(ready: Desk) -> None:
    judge(ready, "g0", cause=Cause.INFRASTRUCTURE)
    update(ready, 1, "g0")
    assert advice(ready) == []


def test_a_step_may_be_repeated_under_another_attempt_only(ready: Desk) -> None:
    assert update(ready, 1, "g0")
    assert not update(ready, 1, "g0")
    with pytest.raises(Conflict, match="names another attempt"):
        update(ready, 1, "g1")
    assert update(ready, 1, "g1", attempt="second")


def test_standing_advice_is_in_the_snapshot_and_outlives_the_horizon(ready: Desk) -> None:
    update(ready, 1, "b0")
    [told] = advice(ready)
    judge(ready, "g7")
    with transaction(ready.engine) as session:
        head = decisions.head(session, ready.project.id).seq
        decisions.trim(session, ready.project.id, 1)
        assert told in decisions.standing(session, ready.project.id, head, 0, 100)
        assert told in decisions.standing(session, ready.project.id, head, told.seq - 1, 1)
        assert told not in decisions.standing(session, ready.project.id, head, told.seq, 100)
