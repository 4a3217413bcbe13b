"""From a posted line to its verdict and to the feed, on a real Postgres."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from inspector import quarantine, review
from inspector.audit import Pace, look_back
from inspector.check import Cause, Check, Finding, Tier, Trajectory, check
from inspector.errors import BadSubmission, Unknown
from inspector.review import JudgementOfPerson
from inspector.store import environments, look_backs, runs, states
from inspector.store.session import transaction
from inspector.task import Declaration, RewardDeclaration, State
from inspector.verdict import Action, Mode, Outcome, Scope, Verdict
from tests.audit.conftest import FAILED, Desk, OpenDesk, episode


def members(size: int, **fields: object) -> list[dict[str, object]]:
    return [episode(f"m{at}", group={"id": "g", "index": at, "size": size}, **fields) for at in range(size)]


def named(function: object) -> Check:
    assert isinstance(function, Check)
    return function.qualified("test")


@check(version=1, tier=Tier.ACTION, cause=Cause.POLICY_EXPLOIT)
def says_hack(trajectory: Trajectory) -> Iterator[Finding]:
    """The agent says that it hacked."""
    if "hack" in str(trajectory.steps[0].message):
        yield Finding(message="it said so")
        return


@check(version=1, tier=Tier.EVIDENCE, cause=Cause.VERIFIER_DEFECT)
def says_broken(trajectory: Trajectory) -> Iterator[Finding]:
    """The verifier is said to be broken."""
    if "broken" in str(trajectory.steps[0].message):
        yield Finding(message="it is")


@check(version=1, tier=Tier.EVIDENCE, cause=Cause.VERIFIER_DEFECT)
def raises(trajectory: Trajectory) -> Iterator[Finding]:
    """Always fails."""
    raise ZeroDivisionError
    yield


def test_a_paid_episode_with_failing_tests_is_excluded_and_logged(desk: Desk) -> None:
    desk.post(episode("a", verifier=FAILED), episode("b"))
    desk.audit()
    [decision] = desk.feed()
    assert (decision.seq, decision.trajectory, decision.action, decision.cause) == (1, "a", Action.EXCLUDE, Cause.VERIFIER_DEFECT)
    assert (decision.final, decision.mode, decision.supersedes) == (True, Mode.OBSERVE, None)
    assert desk.stored("a").verdict is Verdict.QUARANTINE


def test_what_is_kept_is_answered_but_not_logged(desk: Desk) -> None:
    desk.post(episode("b"))
    desk.audit()
    assert desk.feed() == []
    assert (desk.stored("b").verdict, desk.stored("b").action, desk.stored("b").final) == (Verdict.ACCEPT, Action.KEEP, True)


def test_waiting_readers_are_woken_after_the_commit(desk: Desk) -> None:
    desk.post(episode("b"))
    desk.audit()
    assert desk.woken == [{desk.project.id}]


def test_a_group_with_fewer_than_two_scored_rows_left_is_excluded_whole(desk: Desk) -> None:
    desk.post(*members(3, verifier=FAILED)[:2], members(3)[2])
    desk.audit()
    assert [(d.trajectory, d.scope, d.group) for d in desk.feed()][2:] == [("m2", Scope.GROUP, "g")]
    assert desk.stored("m2").action is Action.EXCLUDE
    assert desk.stored("m2").final


def test_a_sound_group_is_kept_and_becomes_final_when_it_is_complete(desk: Desk) -> None:
    posted = members(3)
    desk.post(*posted[:2])
    desk.audit()
    assert not desk.stored("m0").final
    desk.post(posted[2])
    desk.audit()
    assert desk.stored("m0").final
    assert desk.feed() == []


@pytest.mark.parametrize("together", [True, False], ids=["in one block", "one after the other"])
def test_the_same_steps_with_another_reward_flag_both_whatever_came_first(desk: Desk, together: bool) -> None:
    pair = [episode("a", says="the same", reward=1.0), episode("b", says="the same", reward=0.0, verifier=None)]
    if together:
        desk.post(*pair)
    else:
        for one in pair:
            desk.post(one)
            desk.audit()
    desk.audit()
    assert [desk.stored(id_).action for id_ in "ab"] == [Action.EXCLUDE] * 2


def test_twins_are_told_of_although_the_worker_died_after_its_commit(desk: Desk) -> None:
    desk.post(episode("a", says="the same", reward=1.0))
    desk.audit()
    desk.post(episode("b", says="the same", reward=0.0, verifier=None))
    auditor = desk.auditor()
    claims = auditor.claim()
    auditor._close(claims, auditor._inspect(claims))  # and nothing more
    with transaction(desk.engine) as session:
        look_back.keep(session, look_backs.left(session, 60))
    assert (desk.audit(), desk.stored("a").action) == (0, Action.KEEP), "it may still be in hand"
    with transaction(desk.engine) as session:
        look_back.keep(session, look_backs.left(session, 0))
    desk.audit()
    assert desk.stored("a").action is Action.EXCLUDE
    with transaction(desk.engine) as session:
        assert look_backs.left(session, 0) == [], "nothing is promised any more"


def test_twins_are_found_beside_any_number_of_other_tasks_with_the_same_steps(desk: Desk) -> None:
    desk.post(*(episode(f"other{at}", says="the same", task={"id": f"other{at}"}) for at in range(12)))
    desk.audit()
    for id_, reward in (("a", 1.0), ("b", 0.0)):
        desk.post(episode(id_, says="the same", reward=reward, verifier=None))
        desk.audit()
    assert [desk.stored(id_).action for id_ in ("a", "b", "other0")] == [Action.EXCLUDE, Action.EXCLUDE, Action.KEEP]


@pytest.mark.parametrize("together", [True, False], ids=["in one block", "one after the other"])
def test_every_member_of_a_group_with_several_tasks_is_excluded(desk: Desk, together: bool) -> None:
    posted = members(3)
    posted[2]["task"] = {"id": "another"}
    for block in [posted] if together else [[one] for one in posted]:
        desk.post(*block)
        desk.audit()
    assert [desk.stored(f"m{at}").action for at in range(3)] == [Action.EXCLUDE] * 3
    assert desk.audit() == 0, "it ends"


def test_a_check_that_raises_costs_its_own_outcome_alone(open_desk: OpenDesk) -> None:
    desk = open_desk(named(raises), named(says_broken))
    desk.post(episode("a", says="broken things"))
    desk.audit()
    assert desk.stored("a").outcomes == (Outcome.ERROR, Outcome.FLAGGED)
    assert "ZeroDivisionError" in desk.stored("a").notes[0]


def test_a_person_overrules_the_policy_and_no_later_audit_changes_it(desk: Desk) -> None:
    desk.post(episode("a", says="the same", verifier=FAILED))
    desk.audit()
    with transaction(desk.engine) as session:
        decision = review.judge(session, desk.project.id, desk.key("a"), "mira", JudgementOfPerson.ACCEPT, None, "flaky test")
    assert (decision.seq, decision.action, decision.supersedes, decision.author, decision.final) == (2, Action.KEEP, 1, "person:mira", True)
    desk.post(episode("b", says="the same", reward=0.5, verifier=None))  # a twin: `a` would be audited again
    desk.audit()
    assert (desk.stored("a").action, desk.stored("a").by_person) == (Action.KEEP, True)


def test_an_override_needs_a_reward_within_the_declared_range(desk: Desk) -> None:
    desk.declare(Declaration(reward=RewardDeclaration(min=0, max=1)))
    desk.post(episode("a"), episode("none", reward=None, verifier=None))
    desk.audit()
    for id_, reward, path in [("a", None, "$.reward"), ("a", 2.0, "$.reward"), ("none", 0.5, "$.judgement")]:
        with transaction(desk.engine) as session, pytest.raises(BadSubmission) as refused:
            review.judge(session, desk.project.id, desk.key(id_), "mira", JudgementOfPerson.OVERRIDE, reward, "")
        assert refused.value.path == path


def test_another_projects_trajectory_cannot_be_judged(open_desk: OpenDesk) -> None:
    ours, theirs = open_desk(), open_desk(name="beta")
    theirs.post(episode("a"))
    theirs.audit()
    with transaction(ours.engine) as session, pytest.raises(Unknown):
        review.judge(session, ours.project.id, theirs.key("a"), "mira", JudgementOfPerson.QUARANTINE, None, "")


def test_revoking_a_check_supersedes_what_rests_on_it_alone(open_desk: OpenDesk) -> None:
    desk = open_desk(named(says_broken), named(says_hack))
    desk.post(episode("a", says="broken"), episode("both", says="broken hack"), episode("c"))
    desk.audit()
    with transaction(desk.engine) as session:
        preview = review.revoke(session, desk.project.id, "test/says_broken", 1, "mira", preview=True)
        assert (preview.decisions, len(desk.feed())) == (2, 2)
        review.revoke(session, desk.project.id, "test/says_broken", 1, "mira", preview=False)
    assert [(d.trajectory, d.action, d.supersedes) for d in desk.feed(2)] == [("a", Action.KEEP, 1), ("both", Action.KEEP, 2)]
    desk.post(episode("later", says="broken again"))
    desk.audit()
    assert desk.stored("later").action is Action.KEEP, "what a revoked check finds decides nothing any more"


def test_a_check_that_decides_too_much_of_a_run_stops_being_enforced_there(open_desk: OpenDesk) -> None:
    desk = open_desk(named(says_hack))
    desk.enforce("r")
    pace = Pace(stop_window=20)
    for step in range(3):
        desk.post(*(episode(f"{step}-{at}", says=f"hack {step} {at}", run={"id": "r"}) for at in range(3)))
        desk.auditor(pace).drain()
    assert [d.enforced for d in desk.feed()] == [True] * 3 + [False] * 6
    with transaction(desk.engine) as session:
        assert runs.find(session, desk.project.id, "r").stopped == ["test/says_hack@1"]


@pytest.mark.parametrize(("first", "rewards", "enforced"), [("hack", (1.0, 1.0, 1.0), False), ("broken", (1.0, None, 1.0), True)])
def test_a_group_that_is_out_only_by_a_check_that_is_stopped_is_not_enforced(
    open_desk: OpenDesk, first: str, rewards: tuple[float | None, ...], enforced: bool
) -> None:
    desk = open_desk(named(says_hack), named(says_broken))
    desk.enforce("r")
    pace = Pace(stop_window=20)
    desk.post(*(episode(f"{at}", says=f"hack {at}", run={"id": "r"}) for at in range(5)))
    desk.auditor(pace).drain()
    group = {"id": "g", "size": 3}
    said = zip((first, "hack", "nothing"), rewards, strict=True)
    desk.post(*(episode(f"m{at}", says=f"{what} m{at}", reward=reward, run={"id": "r"}, group=group) for at, (what, reward) in enumerate(said)))
    desk.auditor(pace).drain()
    decided = {d.trajectory: d for d in desk.feed()}
    assert (decided["m1"].enforced, decided["m2"].scope, decided["m2"].action) == (False, Scope.GROUP, Action.EXCLUDE)
    assert decided["m2"].enforced is enforced


def test_facts_put_the_environment_on_watch_and_enforcement_goes_on(open_desk: OpenDesk) -> None:
    desk = open_desk(named(says_broken))
    desk.enforce("r")
    desk.post(*(episode(f"{at}", says=f"broken {at}", run={"id": "r"}) for at in range(6)))
    desk.auditor(Pace(stop_window=20)).drain()
    assert all(d.enforced for d in desk.feed())
    assert [(w.environment, w.version) for w in desk.watched] == [("acme/terminal", "1")]


def test_a_late_closer_writes_nothing(desk: Desk) -> None:
    desk.post(episode("a", verifier=FAILED))
    slow = desk.auditor(Pace(lease_s=0.0))
    claims = slow.claim()
    assert desk.audit() == 1, "the lease ran out, so another worker took it"
    slow.audit(claims)
    assert [d.seq for d in desk.feed()] == [1]


def test_its_owners_quarantine_is_logged_for_every_project_that_posted_it(open_desk: OpenDesk) -> None:
    ours, theirs, strangers = open_desk(), open_desk(name="beta"), open_desk(name="gamma")
    ours.post(episode("a"))
    theirs.post(episode("a"))
    ours.declare(Declaration())
    with transaction(ours.engine) as session:
        quarantine.set_state(session, "acme/terminal", "1", None, State.QUARANTINED, author="person:mira", note="pays for nothing", project=ours.project.id)
    for desk in (ours, theirs):
        [decision] = desk.feed()
        assert (decision.action, decision.state, decision.environment, decision.scope) == (
            Action.SET_STATE,
            State.QUARANTINED,
            "acme/terminal",
            Scope.ENVIRONMENT_VERSION,
        )
    assert strangers.feed() == []
    with transaction(ours.engine) as session:
        assert [(s.environment, s.state) for _, s in states.page(session, theirs.project.id, None, 9)] == [("acme/terminal", State.QUARANTINED)]


def test_a_reward_that_was_not_scored_is_not_a_reward_of_zero(desk: Desk) -> None:
    desk.post(episode("none", reward=None, verifier=None), episode("zero", reward=0.0, verifier=None))
    desk.audit()
    with transaction(desk.engine) as session:
        means = environments.honest_means(session, desk.project.id, [1, 2, 3])
    assert list(means.values()) == [(1, 0.0)], "only the scored one counts"


def test_a_visit_ends_when_its_time_is_over(desk: Desk) -> None:
    desk.post(episode("a"))
    assert desk.auditor().drain(0.0) == 0
    assert desk.auditor().drain(60.0) == 1
