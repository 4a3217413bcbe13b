"""Late checks: they run on their own queue, amend what stands through the log, and have a deadline."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from inspector import quarantine
from inspector.amend import Amendment, amend
from inspector.audit import LateAuditor, Pace
from inspector.check import Baselines, Cause, Check, Declaration, Finding, Group, History, Sandbox, Tier, Trajectory, check
from inspector.store import groups, verdicts, work
from inspector.store.segments import SegmentReader
from inspector.store.session import driver, transaction
from inspector.store.work import Lane
from inspector.task import State
from inspector.verdict import Action, Outcome, Scope, Verdict
from tests.audit.conftest import Desk, OpenDesk, episode


@check(version=1, tier=Tier.EVIDENCE, cause=Cause.VERIFIER_DEFECT)
def pays_alike(group: Group, declaration: Declaration) -> Iterator[Finding]:
    """Every rollout was paid the same for different work."""
    if group.complete and len({t.reward for t in group.trajectories}) == 1:
        yield Finding(message=f"{len(group.trajectories)} rollouts of {group.id} were paid alike")


@check(version=1, tier=Tier.EVIDENCE, cause=Cause.INFRASTRUCTURE)
def broke(trajectory: Trajectory) -> Iterator[Finding]:
    """It says that it broke."""
    if "broke" in str(trajectory.steps[0].message):
        yield Finding(message="it broke")


@check(version=1, tier=Tier.ACTION, cause=Cause.VERIFIER_DEFECT)
def odd(trajectory: Trajectory) -> Iterator[Finding]:
    """It says that it was odd."""
    if "odd" in str(trajectory.steps[0].message):
        yield Finding(message="it was odd", score=0.5)


@check(version=1, tier=Tier.EVIDENCE, cause=Cause.VERIFIER_DEFECT)
def replays_differ(trajectory: Trajectory, sandbox: Sandbox) -> Iterator[Finding]:
    """A replay gives another reward."""
    yield Finding(message="it does")


@check(version=1, tier=Tier.EVIDENCE, cause=Cause.VERIFIER_DEFECT)
def ends_its_process(group: Group) -> Iterator[Finding]:
    """Takes its process along."""
    os.kill(os.getpid(), 9)
    yield Finding(message="never said")


@check(version=1, tier=Tier.EVIDENCE, cause=Cause.VERIFIER_DEFECT)
def asks_for_all(group: Group, declaration: Declaration, history: History, baselines: Baselines) -> Iterator[Finding]:
    """Asks for everything there is."""
    twins = sum(len(history.twins(t)) for t in group.trajectories)
    yield Finding(message=f"{declaration.declared} {twins} {type(baselines).__name__}")


def named(function: object) -> Check:
    assert isinstance(function, Check)
    return function.qualified("test")


PAYS, BROKE, ODD, REPLAYS, ENDS, ASKS = map(named, (pays_alike, broke, odd, replays_differ, ends_its_process, asks_for_all))


def members(*rewards: float | None, **fields: Any) -> list[dict[str, Any]]:
    group = {"id": "g", "size": len(rewards)}
    return [episode(f"m{at}", group={**group, "index": at}, reward=reward, verifier=None, **fields) for at, reward in enumerate(rewards)]


def late(desk: Desk, pace: Pace | None = None) -> LateAuditor:
    return LateAuditor(desk.auditor(pace))


def set_state(desk: Desk, state: State) -> None:
    with transaction(desk.engine) as session:
        quarantine.set_state(session, "acme/terminal", "1", None, state, author="policy", note="", project=None)


def test_a_late_check_amends_what_was_kept_and_only_then_it_is_final(open_desk: OpenDesk) -> None:
    desk = open_desk(PAYS)
    desk.post(*members(1.0, 1.0))
    desk.audit()
    before = desk.stored("m0")
    assert (before.action, before.final, before.outcomes) == (Action.KEEP, False, (Outcome.PENDING,))
    assert desk.feed() == []
    assert late(desk).drain() == 1
    after = desk.stored("m0")
    assert (after.verdict, after.action, after.final, after.outcomes) == (Verdict.QUARANTINE, Action.EXCLUDE, True, (Outcome.FLAGGED,))
    assert [(d.trajectory, d.action) for d in desk.feed()] == [("m0", Action.EXCLUDE), ("m1", Action.EXCLUDE)]
    assert desk.woken[-1] == {desk.project.id}


def test_a_late_check_that_finds_nothing_makes_the_kept_final_and_logs_nothing(open_desk: OpenDesk) -> None:
    desk = open_desk(PAYS)
    desk.post(*members(1.0, 0.0))
    desk.audit()
    late(desk).drain()
    assert (desk.stored("m1").outcomes, desk.stored("m1").final, desk.feed()) == ((Outcome.CLEAN,), True, [])


def test_what_the_fast_lane_found_stands_beside_what_the_late_one_finds(open_desk: OpenDesk) -> None:
    desk = open_desk(BROKE, PAYS)
    desk.post(*members(1.0, 1.0, 1.0, says="it broke"))
    desk.audit()
    late(desk).drain()
    assert desk.stored("m0").outcomes == (Outcome.FLAGGED, Outcome.FLAGGED)
    assert [d.seq for d in desk.feed()] == [1, 2, 3], "it is out already, for the same cause: nothing to say"


def test_a_late_check_is_given_what_it_asks_for(open_desk: OpenDesk) -> None:
    desk = open_desk(ASKS)
    desk.declare(Declaration(owner="acme"))
    desk.post(*members(1.0, 1.0, says="the same"))
    desk.audit()
    late(desk).drain()
    with transaction(desk.engine) as session:
        [found] = verdicts.findings(session, desk.key("m0"))
    assert found.message == "True 2 Baselines"


def test_fast_workers_leave_late_rows_alone_and_late_ones_fast_rows(open_desk: OpenDesk) -> None:
    desk = open_desk(PAYS)
    desk.post(*members(1.0, 1.0))
    assert late(desk).claim() == []
    desk.audit()
    assert desk.auditor().claim() == []
    assert len(late(desk).claim()) == 1


def test_late_workers_are_called_when_a_group_was_decided(open_desk: OpenDesk) -> None:
    desk, called = open_desk(PAYS), list[bool]()
    auditor = desk.auditor()
    auditor.late = lambda: called.append(True)
    desk.post(*members(1.0, 1.0))
    auditor.drain()
    assert called


def test_another_audit_keeps_what_the_late_lane_said_until_it_says_otherwise(open_desk: OpenDesk) -> None:
    desk = open_desk(PAYS)
    desk.post(*members(0.5, 0.5))
    desk.audit()
    late(desk).drain()
    with transaction(desk.engine) as session:
        work.add_trajectories(session, desk.project.id, [desk.key("m0")])
    said = len(desk.feed())
    desk.audit()
    assert desk.stored("m0").action is Action.EXCLUDE, "not taken back between the two lanes"
    late(desk).drain()
    assert len(desk.feed()) == said
    assert late(desk).drain() == desk.audit() == 0, "it ends"


def test_a_reward_that_comes_later_is_seen_by_late_checks(open_desk: OpenDesk) -> None:
    desk = open_desk(PAYS)
    desk.post(*members(0.5, None))
    desk.audit()
    late(desk).drain()
    assert desk.stored("m0").outcomes == (Outcome.CLEAN,)
    with transaction(desk.engine) as session:
        amend(session, SegmentReader(desk.root), desk.project.id, desk.key("m1"), Amendment(reward=0.5))
    desk.audit()
    late(desk).drain()
    assert [desk.stored(f"m{at}").outcomes for at in range(2)] == [(Outcome.FLAGGED,)] * 2


def test_without_an_answer_by_the_deadline_a_late_check_is_not_assessed(open_desk: OpenDesk) -> None:
    desk = open_desk(PAYS)
    desk.post(*members(1.0, 1.0))
    desk.audit()
    slow = late(desk)
    claims = slow.claim()
    inspected = slow._inspect_in_time(claims)
    assert late(desk).give_up() == 0, "not yet"
    assert late(desk, Pace(late_deadline_s=0.0)).give_up() == 1, "also while somebody holds it"
    stored = desk.stored("m0")
    assert (stored.outcomes, stored.final, stored.action) == ((Outcome.NOT_ASSESSED,), True, Action.KEEP)
    assert "deadline" in stored.notes[0]
    slow._close(inspected)
    assert desk.stored("m0").outcomes == (Outcome.NOT_ASSESSED,), "what comes after the deadline comes too late"


def test_all_that_is_overdue_is_given_up_block_by_block(open_desk: OpenDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = open_desk(PAYS)
    for name in "abc":
        desk.post(*(one | {"id": f"{name}-{one['id']}", "group": one["group"] | {"id": name}} for one in members(1.0, 0.0, says=name)))
    desk.audit()
    monkeypatch.setattr(work, "LATE_BLOCK", 1)
    overdue = late(desk, Pace(late_deadline_s=0.0))
    assert overdue.give_up(for_s=0.0) == 0
    assert overdue.give_up() == 3
    assert all(desk.stored(f"{name}-m0").final for name in "abc")


def test_what_needs_what_nobody_provides_or_a_group_where_there_is_none_is_not_assessed_at_once(open_desk: OpenDesk) -> None:
    desk = open_desk(PAYS, REPLAYS)
    desk.post(episode("alone"), *members(1.0, 0.0))
    desk.audit()
    alone, member = desk.stored("alone"), desk.stored("m0")
    assert (alone.outcomes, alone.final) == ((Outcome.NOT_ASSESSED,) * 2, True)
    assert (alone.notes[0], alone.notes[1]) == ("group: it belongs to none", "sandbox")
    assert member.outcomes == (Outcome.PENDING, Outcome.NOT_ASSESSED)


@pytest.mark.parametrize("state", [State.PROBATION, State.QUARANTINED])
def test_under_probation_or_quarantine_a_pending_late_check_holds_until_it_has_spoken(open_desk: OpenDesk, state: State) -> None:
    desk = open_desk(PAYS)
    desk.post(*members(1.0, 0.0)[:1])
    set_state(desk, state)
    desk.audit()
    [_, held] = desk.feed()
    assert (held.action, held.final, held.trajectory) == (Action.HOLD, False, "m0")
    assert held.until is not None
    assert held.decided_at is not None
    assert 0 < (held.until - held.decided_at).total_seconds() <= 30
    desk.post(members(1.0, 0.0)[1])
    desk.audit()
    late(desk).drain()
    assert [(d.trajectory, d.action, d.supersedes) for d in desk.feed(3)] == [("m0", Action.KEEP, 2), ("m1", Action.KEEP, 3)]


@pytest.mark.parametrize("decided_by", ["who had the check", "who has it no more"])
def test_a_late_check_that_is_no_longer_installed_is_not_assessed_and_holds_nothing_any_more(open_desk: OpenDesk, decided_by: str) -> None:
    desk = open_desk(PAYS)
    desk.post(*members(1.0, 0.0)[:1])
    set_state(desk, State.PROBATION)
    desk.post(members(1.0, 0.0)[1])
    older, newer = desk.auditor(), replace(desk, checks=())
    older.audit(older.claim())
    assert desk.stored("m0").action is Action.HOLD
    (desk if decided_by == "who had the check" else newer).audit()
    assert not desk.stored("m0").final
    assert late(newer).drain() == 1
    stored = desk.stored("m0")
    assert (stored.outcomes, stored.action, stored.final) == ((Outcome.NOT_ASSESSED,), Action.KEEP, True)
    assert "no longer installed" in stored.notes[0]
    assert [d.action for d in desk.feed() if d.trajectory == "m0"] == [Action.HOLD, Action.KEEP]
    assert late(newer).drain() == newer.audit() == 0, "it ends"


def test_a_member_that_came_while_late_checks_ran_waits_for_answers_that_knew_it(open_desk: OpenDesk) -> None:
    desk = open_desk(PAYS)
    posted = members(0.5, 0.25, 0.5)
    desk.post(posted[0])
    desk.audit()
    with transaction(desk.engine) as session:
        work.add_groups(session, groups.close_quiet(session, 0.0))
    desk.audit()
    slow = late(desk)
    inspected = slow._inspect_in_time(slow.claim())
    desk.post(*posted[1:])
    desk.audit()
    slow._close(inspected)
    first, joined = desk.stored("m0"), desk.stored("m2")
    assert (first.outcomes, joined.outcomes) == ((Outcome.CLEAN,), (Outcome.PENDING,))
    assert not first.final
    assert not joined.final
    assert late(desk).drain() == 1
    assert (desk.stored("m2").outcomes, desk.stored("m2").final, desk.stored("m0").final) == ((Outcome.CLEAN,), True, True)


def test_under_watch_nothing_is_held(open_desk: OpenDesk) -> None:
    desk = open_desk(PAYS)
    desk.post(*members(1.0, 0.0))
    set_state(desk, State.WATCH)
    desk.audit()
    assert desk.stored("m0").action is Action.KEEP


def test_a_late_check_that_ends_its_process_is_named_and_costs_its_own_outcome(open_desk: OpenDesk) -> None:
    desk = open_desk(ENDS)
    desk.post(*members(1.0, 0.0))
    desk.audit()
    with transaction(desk.engine) as session:
        driver(session).execute("UPDATE work SET claims = 2, until = now() - interval '1 s' WHERE lane = %s", (int(Lane.LATE),))
    late(desk).drain()
    stored = desk.stored("m0")
    assert (stored.outcomes, stored.final, stored.action) == ((Outcome.ERROR,), True, Action.KEEP)
    assert "test/ends_its_process" in stored.notes[0]


@pytest.mark.parametrize("third", ["worked", "was odd"])
def test_a_group_out_by_its_rows_is_not_told_so_twice(open_desk: OpenDesk, third: str) -> None:
    desk = open_desk(BROKE, ODD, PAYS)
    posted = members(1.0, 0.5, 0.0)
    posted[2]["trajectory"]["steps"][0]["message"] = f"it {third}"
    for one in posted[:2]:
        one["trajectory"]["steps"][0]["message"] = f"it broke {one['id']}"
    desk.post(*posted)
    desk.audit()
    told = [(d.trajectory, d.scope, d.action) for d in desk.feed()]
    assert told[-1] == ("m2", Scope.GROUP, Action.EXCLUDE)
    late(desk).drain()
    assert len(desk.feed()) == len(told)
    assert (desk.stored("m2").action, desk.stored("m2").final) == (Action.EXCLUDE, True)
