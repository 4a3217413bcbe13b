"""The laws of the state machine, whatever it is shown."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from inspector.standing import CLEAN, DEFAULT, Evidence, Move, Now, Seen, Why, conditions, decide, fleet
from inspector.standing.evidence import counts_for_version
from inspector.task import State

BEGIN = datetime(2026, 12, 1, tzinfo=UTC)
DEFECT, BROKEN = Seen(defect=True), Seen(broken=True)
EXPLOIT, LOSING = Seen(defect=True, exploit=True), Seen(neutralised=True)


def counted(*seen: Seen) -> Evidence:
    evidence = Evidence()
    for one in seen:
        evidence.add(one)
    return evidence


def state_after(now: Now, evidence: Evidence, at: datetime = BEGIN, tasks: int | None = None) -> State:
    move = decide(now, evidence, at, tasks=tasks)
    return now.state if move is None else move.after


def test_defects_quarantine_and_half_of_the_evidence_watches() -> None:
    assert state_after(Now(), counted(DEFECT)) is State.ACTIVE
    assert state_after(Now(), counted(DEFECT, DEFECT)) is State.WATCH
    assert state_after(Now(), counted(*[DEFECT] * 4)) is State.QUARANTINED
    assert state_after(Now(), counted(*[DEFECT] * 3, *[CLEAN] * 30, DEFECT)) is State.WATCH


def test_a_task_goes_at_its_third_confirmed_exploit_and_a_version_with_its_tasks() -> None:
    evidence = Evidence(exploits=2)
    assert state_after(Now(), evidence) is State.WATCH
    evidence.exploits = 3
    assert state_after(Now(), evidence) is State.QUARANTINED
    assert state_after(Now(), evidence, tasks=60) is State.QUARANTINED
    assert state_after(Now(), evidence, tasks=61) is State.WATCH  # less than one in twenty: quarantining those tasks removes it


def test_an_exploit_that_loses_by_itself_only_watches() -> None:
    assert state_after(Now(), counted(*[LOSING] * 500)) is State.WATCH


def test_a_dead_sandbox_quarantines_a_version_and_no_task() -> None:
    dead = counted(*[BROKEN] * 30)
    assert state_after(Now(), dead, tasks=5) is State.QUARANTINED
    assert state_after(Now(), dead) is State.WATCH
    assert dead.score == 0.0
    one_host_of_eight = counted(*[BROKEN, *[CLEAN] * 7] * 100)
    assert state_after(Now(), one_host_of_eight, tasks=5) is State.ACTIVE


def test_one_sick_task_does_not_quarantine_its_version() -> None:
    task, version = Evidence(), Evidence()
    for seen in [DEFECT] * 16:
        task.add(seen)
        if counts_for_version(task, seen):
            version.add(seen)
    assert state_after(Now(), task) is State.QUARANTINED
    assert state_after(Now(), version, tasks=10) is not State.QUARANTINED


@pytest.mark.parametrize("why", [Why.DEFECTS, Why.INFRASTRUCTURE])
def test_clean_replays_and_clean_episodes_release_what_was_measured(why: Why) -> None:
    now = Now(State.QUARANTINED, why, BEGIN)
    assert state_after(now, Evidence(golden=29)) is State.QUARANTINED
    assert state_after(now, Evidence(golden=30)) is State.PROBATION
    assert state_after(now, counted(*[CLEAN] * 35)) is State.PROBATION
    assert state_after(now, counted(*[CLEAN] * 33)) is State.QUARANTINED


@pytest.mark.parametrize("why", [Why.EXPLOITS, Why.PROBE])
def test_clean_replays_do_not_release_what_can_be_exploited(why: Why) -> None:
    now = Now(State.QUARANTINED, why, BEGIN)
    assert state_after(now, replace(counted(*[CLEAN] * 500), golden=500), BEGIN + timedelta(days=900)) is State.QUARANTINED


def test_a_quarantine_that_nobody_looked_at_ends_with_clean_replays_alone() -> None:
    now, late = Now(State.QUARANTINED, Why.DEFECTS, BEGIN), BEGIN + timedelta(days=14)
    assert state_after(now, Evidence(golden=10), late - timedelta(seconds=1)) is State.QUARANTINED
    assert state_after(now, Evidence(golden=10), late) is State.PROBATION
    assert state_after(now, Evidence(golden=10, dirty=1), late) is State.QUARANTINED
    assert state_after(now, Evidence(), late) is State.QUARANTINED


def test_probation_ends_in_active_after_its_episodes_and_in_quarantine_at_an_exploit() -> None:
    now = Now(State.PROBATION, Why.CLEAN, BEGIN)
    assert state_after(now, counted(*[CLEAN] * 199)) is State.PROBATION
    assert state_after(now, counted(*[CLEAN] * 200)) is State.ACTIVE
    assert state_after(now, counted(*[CLEAN] * 199, EXPLOIT)) is State.QUARANTINED


@given(st.sampled_from(State), st.sampled_from(Why), st.builds(Evidence, score=st.floats(0, 100), exploits=st.integers(0, 99), golden=st.integers(0, 99)))
def test_what_a_person_holds_stays(state: State, why: Why, evidence: Evidence) -> None:
    assert decide(Now(state, why, BEGIN, held=True), evidence, BEGIN + timedelta(days=99), tasks=1) is None


@given(st.lists(st.floats(0, 20), min_size=1, max_size=50))
def test_a_larger_fleet_is_never_quarantined_on_less(scores: list[float]) -> None:
    assert DEFAULT.bar <= fleet.bar(scores) <= fleet.bar([*scores, 0.0])


def test_one_version_an_hour_may_always_be_quarantined_and_no_second_above_the_share() -> None:
    assert fleet.allows(fleet.Hour(weight=100, moved=0, share=0.0), weight=90)
    assert not fleet.allows(fleet.Hour(weight=100, moved=1, share=0.9), weight=1)
    assert fleet.allows(fleet.Hour(weight=100, moved=1, share=0.01), weight=4)
    assert not fleet.allows(fleet.Hour(weight=100, moved=1, share=0.01), weight=5)


class Life(RuleBasedStateMachine):
    """One environment version, with everything that can happen to it."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.evidence, self.at = Now(State.ACTIVE, Why.NOTHING, BEGIN), Evidence(), BEGIN
        self.log: list[State] = []
        self.first = State.ACTIVE

    def _moved(self, move: Move | None) -> None:
        if move is None:
            return
        before = self.now.state
        assert (before, move.after) in {
            (State.ACTIVE, State.WATCH),
            (State.ACTIVE, State.QUARANTINED),
            (State.WATCH, State.QUARANTINED),
            (State.WATCH, State.ACTIVE),
            (State.QUARANTINED, State.PROBATION),
            (State.PROBATION, State.QUARANTINED),
            (State.PROBATION, State.ACTIVE),
        }
        if before is State.QUARANTINED:
            golden, clear = self.evidence.golden >= DEFAULT.golden_expired, self.evidence.clearing <= -DEFAULT.clear
            assert self.now.why in (Why.DEFECTS, Why.INFRASTRUCTURE)
            assert golden or clear
        if move.after is State.ACTIVE:
            assert self.evidence.score < DEFAULT.bar / 2
        self.log.append(move.after)
        self.now = Now(move.after, move.why, self.at)
        self.evidence = self.evidence if move.after is State.WATCH else Evidence()

    @rule(seen=st.sampled_from([CLEAN, DEFECT, EXPLOIT, LOSING, BROKEN]), times=st.sampled_from([1, 2, 3, 40, 250]))
    def audited(self, seen: Seen, times: int) -> None:
        for _ in range(times):
            self.evidence.add(seen)
            self._moved(decide(self.now, self.evidence, self.at, tasks=20))

    @rule(clean=st.booleans(), times=st.sampled_from([1, 12, 30]))
    def replayed(self, clean: bool, times: int) -> None:
        for _ in range(times):
            self.evidence.replayed(clean=clean)
            self._moved(decide(self.now, self.evidence, self.at, tasks=20))

    @rule(days=st.integers(1, 20))
    def time_passes(self, days: int) -> None:
        self.at += timedelta(days=days)
        self._moved(decide(self.now, self.evidence, self.at, tasks=20))

    @rule(state=st.sampled_from(State))
    def a_person_acts(self, state: State) -> None:
        self.now, self.evidence = Now(state, Why.PERSON, self.at, held=state is not State.ACTIVE), Evidence()
        self.log.append(state)

    @rule()
    def a_person_hands_it_back(self) -> None:
        self.now = self.now._replace(held=False)

    @invariant()
    def the_log_gives_the_state(self) -> None:
        assert self.now.state is ([self.first, *self.log])[-1]

    @invariant()
    def it_says_how_it_would_be_released(self) -> None:
        assert self.now.state is State.ACTIVE or conditions(self.now, self.evidence)


TestLife = Life.TestCase
