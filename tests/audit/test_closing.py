"""What two audits of one trajectory, late members and lost databases do to the closing transaction."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from inspector import review
from inspector.amend import Amendment, amend
from inspector.audit import Auditor, Pace
from inspector.check import Cause, Check, Finding, Tier, Trajectory, check
from inspector.errors import Unavailable
from inspector.store import groups, verdicts, work
from inspector.store.segments import SegmentReader
from inspector.store.session import driver, transaction
from inspector.store.work import Claim
from inspector.task import Declaration, RewardDeclaration
from inspector.verdict import Action, Scope
from tests.audit.conftest import FAILED, Desk, OpenDesk, episode


def again(desk: Desk, *ids: str) -> None:
    with transaction(desk.engine) as session:
        work.add_trajectories(session, desk.project.id, [desk.key(id_) for id_ in ids])


def waiting(desk: Desk) -> int:
    with transaction(desk.engine) as session:
        found = work.waiting(session)
    return found.waiting + found.leased


def member(at: int, **fields: Any) -> dict[str, Any]:
    return episode(f"m{at}", group={"id": "g", "index": at, **({"size": fields.pop("size")} if "size" in fields else {})}, **fields)


def test_asked_for_twice_in_one_block_it_is_audited_once(desk: Desk) -> None:
    desk.post(episode("a", verifier=FAILED), episode("b"))
    desk.audit()
    again(desk, "a", "b", "a", "a")
    desk.audit()
    assert waiting(desk) == 0
    assert [d.seq for d in desk.feed()] == [1], "it says the same again, so nothing is logged"


def test_two_audits_of_one_trajectory_that_close_at_once_both_close(desk: Desk) -> None:
    """Each holds a work row of its own for the same key; neither may fail on what the other writes."""
    desk.post(*(episode(f"{n}", verifier=FAILED) for n in range(20)))
    desk.audit()
    for _ in range(10):
        again(desk, *map(str, range(20)))
        again(desk, *map(str, range(20)))
        auditors = [desk.auditor(Pace(block=20)) for _ in range(2)]
        blocks = [auditor.claim() for auditor in auditors]
        assert [len(block) for block in blocks] == [20, 20]
        together = threading.Barrier(2)

        def close(auditor: Auditor, block: list[Claim], together: threading.Barrier = together) -> None:
            judged = auditor._inspect(block)
            together.wait(60)
            auditor._close(block, judged)

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(close, auditors, blocks))
    assert waiting(desk) == 0
    assert len(desk.feed()) == 20


def test_another_audit_of_a_member_does_not_decide_a_group_that_still_waits_for_others(desk: Desk) -> None:
    desk.post(member(0, size=4, verifier=FAILED), member(1, size=4))
    desk.audit()
    again(desk, "m1")
    desk.audit()
    assert desk.stored("m1").action is Action.KEEP, "two more are to come"
    desk.post(member(2, size=4), member(3, size=4))
    desk.audit()
    assert desk.stored("m1").final


def test_what_was_read_before_a_reward_was_added_does_not_replace_what_was_read_after(desk: Desk) -> None:
    desk.post(episode("a", reward=None, verifier=FAILED))
    slow = desk.auditor()
    block = slow.claim()
    judged = slow._inspect(block)
    with transaction(desk.engine) as session:
        amend(session, SegmentReader(desk.root), desk.project.id, desk.key("a"), Amendment(reward=1.0))
    desk.audit()
    assert desk.stored("a").action is Action.EXCLUDE
    slow._close(block, judged)
    assert desk.stored("a").action is Action.EXCLUDE
    assert waiting(desk) == 0


@check(version=1, tier=Tier.EVIDENCE, cause=Cause.VERIFIER_DEFECT)
def always(trajectory: Trajectory) -> Iterator[Finding]:
    """Finds something everywhere."""
    yield Finding(message="here")


ALWAYS = always.qualified("test")


def test_a_block_in_flight_does_not_decide_by_a_check_that_was_revoked_meanwhile(open_desk: OpenDesk) -> None:
    desk = open_desk(ALWAYS)
    desk.post(episode("before"))
    desk.audit()
    desk.post(episode("a"))
    auditor = desk.auditor()
    block = auditor.claim()
    judged = auditor._inspect(block)
    with transaction(desk.engine) as session:
        done = review.revoke(session, desk.project.id, "test/always", 1, "mira", preview=False)
    assert (done.decisions, len(desk.feed())) == (1, 2)
    auditor._close(block, judged)
    assert (desk.stored("a").action, len(desk.feed())) == (Action.KEEP, 2)


def test_a_revocation_supersedes_what_was_decided_while_it_was_made(open_desk: OpenDesk) -> None:
    desk = open_desk(ALWAYS)
    desk.post(episode("a"))
    desk.audit()
    desk.post(episode("b"))
    look = verdicts.resting_on
    seen = []

    def look_and_let_another_close(*args: Any) -> Any:
        found = look(*args)
        if not seen:
            desk.audit()
        seen.append(len(found))
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(verdicts, "resting_on", look_and_let_another_close)
        with transaction(desk.engine) as session:
            done = review.revoke(session, desk.project.id, "test/always", 1, "mira", preview=False)
    assert (seen, done.decisions) == ([1, 1], 2)
    assert [(desk.stored(id_).action) for id_ in "ab"] == [Action.KEEP, Action.KEEP]


def test_what_went_out_with_an_incomplete_group_comes_in_again(desk: Desk) -> None:
    desk.post(member(0, verifier=FAILED), member(1))
    desk.audit()
    with transaction(desk.engine) as session:
        work.add_groups(session, groups.close_quiet(session, 0.0))
    desk.audit()
    assert desk.stored("m1").action is Action.EXCLUDE, "one row is no group"
    desk.post(member(2))
    desk.audit()
    assert [desk.stored(f"m{n}").action for n in range(3)] == [Action.EXCLUDE, Action.KEEP, Action.KEEP]
    assert [(d.trajectory, d.action, d.supersedes) for d in desk.feed()][1:] == [("m1", Action.EXCLUDE, None), ("m1", Action.KEEP, 2)]


def test_a_group_whose_rewards_come_later_is_used(desk: Desk) -> None:
    desk.post(member(0, size=4, verifier=FAILED), *(member(n, size=4, reward=None) for n in (1, 2, 3)))
    desk.audit()
    for n in (1, 2, 3):
        with transaction(desk.engine) as session:
            amend(session, SegmentReader(desk.root), desk.project.id, desk.key(f"m{n}"), Amendment(reward=n / 4))
        desk.audit()
    assert [desk.stored(f"m{n}").action for n in range(4)] == [Action.EXCLUDE, Action.KEEP, Action.KEEP, Action.KEEP]


def test_a_late_member_of_a_group_of_unknown_size_becomes_final(desk: Desk) -> None:
    desk.post(member(0), member(1))
    desk.audit()
    with transaction(desk.engine) as session:
        work.add_groups(session, groups.close_quiet(session, 0.0))
    desk.audit()
    assert desk.stored("m0").final
    desk.post(member(2))
    desk.audit()
    assert desk.stored("m2").final


def test_one_more_than_the_groups_size_becomes_final_too(desk: Desk) -> None:
    desk.post(member(0, size=2), member(1, size=2))
    desk.audit()
    desk.post(member(2, size=2))
    desk.audit()
    assert desk.stored("m2").final


@check(version=1, tier=Tier.EVIDENCE, cause=Cause.POLICY_EXPLOIT)
def exploited(trajectory: Trajectory) -> Iterator[Finding]:
    """The agent says that it hacked."""
    if "hack" in str(trajectory.steps[0].message):
        yield Finding(message="it said so")


def test_a_trajectory_decided_alone_and_with_its_group_at_once_has_one_standing_decision(open_desk: OpenDesk) -> None:
    """Its group's audit comes in the same block as another audit of its own."""
    assert isinstance(exploited, Check)
    desk = open_desk(exploited.qualified("test"))
    desk.declare(Declaration(reward=RewardDeclaration(min=0, max=1, penalty_min=-1)))
    desk.post(*(member(at, says=f"hack {at}", size=2) for at in range(2)))
    desk.auditor(Pace(block=2)).drain()
    with transaction(desk.engine) as session:
        driver(session).execute("UPDATE verdict SET action = 0")  # as if a policy before this one had kept them
        work.add_trajectories(session, desk.project.id, [desk.key("m0"), desk.key("m1")])
        work.add_groups(session, [(desk.project.id, desk_group(desk))])
    before = len(desk.feed())
    desk.audit()
    mine = [d for d in desk.feed(before) if d.trajectory == "m0"]
    assert [d.scope for d in mine] == [Scope.GROUP]
    assert (desk.stored("m0").seq, desk.stored("m0").action) == (mine[-1].seq, Action.EXCLUDE)
    assert desk.feed()[-1].seq == len(desk.feed())


def desk_group(desk: Desk) -> int:
    with transaction(desk.engine) as session:
        row = driver(session).execute("SELECT id FROM rollout_group").fetchone()
    assert row is not None
    return int(row[0])


def test_an_audit_that_cannot_reach_the_database_leaves_no_alarm_behind(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.post(episode("a"))
    auditor = desk.auditor(Pace(lease_s=0.0))
    auditor.alarms = True
    claims = auditor.claim()

    def away(claims: object) -> None:
        raise Unavailable("the database is away")

    monkeypatch.setattr(auditor, "_inspect", away)
    try:
        with pytest.raises(Unavailable):
            auditor.audit(claims)
        assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    assert desk.audit() == 1


def blocking(let_go: threading.Event, began: threading.Event) -> Check:
    @check(version=1, tier=Tier.TEXT, cause=Cause.ANOMALY)
    def slow(trajectory: Trajectory) -> Iterator[Finding]:
        """Takes as long as it is made to."""
        began.set()
        let_go.wait(60)
        return
        yield

    assert isinstance(slow, Check)
    return slow.qualified("test")


def test_a_block_that_outlives_its_lease_keeps_it_while_it_is_alive(open_desk: OpenDesk) -> None:
    let_go, began = threading.Event(), threading.Event()
    desk = open_desk(blocking(let_go, began))
    desk.post(episode("a"), episode("b"))
    slow = desk.auditor(Pace(lease_s=1.5, heartbeat_s=0.2))
    with ThreadPoolExecutor(1) as pool:
        try:
            audited = pool.submit(slow.drain)
            assert began.wait(60)
            _outlast(desk, leases=3, lease_s=1.5)
            assert desk.auditor().claim() == []
        finally:
            let_go.set()
        assert audited.result(60) == 2
    assert (waiting(desk), desk.stored("a").final) == (0, True)


def test_a_block_whose_worker_gives_no_sign_any_more_is_taken(open_desk: OpenDesk) -> None:
    let_go, began = threading.Event(), threading.Event()
    desk = open_desk(blocking(let_go, began))
    desk.post(episode("a"))
    slow = desk.auditor(Pace(lease_s=0.3, heartbeat_s=3600))
    with ThreadPoolExecutor(1) as pool:
        try:
            late = pool.submit(slow.drain)
            assert began.wait(60)
            _outlast(desk, leases=2, lease_s=0.3)
            [taken] = desk.auditor().claim()
        finally:
            let_go.set()
        late.result(60)
    assert (taken.claims, waiting(desk)) == (2, 1), "the late one closed nothing"
    with transaction(desk.engine) as session:
        assert verdicts.stored(session, desk.project.id, [desk.key("a")]) == {}


def _outlast(desk: Desk, leases: float, lease_s: float) -> None:
    """Until the database's clock is some leases further."""
    with transaction(desk.engine) as session:
        driver(session).execute("SELECT pg_sleep(%s)", (leases * lease_s,))


def test_what_fails_for_weeks_does_not_keep_others_from_being_claimed(desk: Desk) -> None:
    desk.post(episode("a"), episode("b"))
    with transaction(desk.engine) as session:
        driver(session).execute("UPDATE work SET claims = 32767, until = now() - interval '1 s' WHERE key = %s", (desk.key("a"),))
    assert desk.audit() == 2


def test_a_heartbeat_does_not_wait_for_its_own_closing(desk: Desk) -> None:
    """It could lock the rows in another order than the closer, and one of them would be killed."""
    desk.post(*(episode(f"{n}") for n in range(5)))
    claims = desk.auditor().claim()
    with transaction(desk.engine) as closing:
        work.close(closing, claims)
        with transaction(desk.engine) as beating:
            driver(beating).execute("SET LOCAL lock_timeout = '1s'")
            work.extend(beating, claims, 30.0)


def test_a_group_that_lost_its_rows_to_what_ran_it_is_to_be_rolled_out_again(desk: Desk) -> None:
    desk.post(member(0, size=2, verifier={"exit_code": 124, "timed_out": True, "stdout": "killed"}), member(1, size=2))
    desk.audit()
    told = {d.trajectory: d for d in desk.feed()}
    assert [(told[id_].scope, told[id_].action, told[id_].retry) for id_ in ("m0", "m1")] == [
        (Scope.TRAJECTORY, Action.EXCLUDE, True),
        (Scope.GROUP, Action.EXCLUDE, True),
    ]
    assert told["m1"].impact is not None
    assert (told["m1"].impact.left, desk.stored("m1").retry) == (1, True)
