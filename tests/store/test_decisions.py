"""The decision log: cursors, its horizon, and the snapshot from which a follower may start."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine
from sqlmodel import Session

from inspector import quarantine
from inspector.errors import Gone
from inspector.store import decisions, environments, projects, states, verdicts
from inspector.store.decisions import Numbered
from inspector.store.environments import EnvironmentName
from inspector.store.session import connect, driver, transaction
from inspector.store.verdicts import NewVerdict
from inspector.task import State
from inspector.verdict import Action, Decision, Scope, Verdict

KEEP, EXCLUDE, OVERRIDE = Action.KEEP, Action.EXCLUDE, Action.OVERRIDE_REWARD


@pytest.fixture(scope="module")
def engine(module_database: str) -> Iterator[Engine]:
    engine = connect(module_database)
    yield engine
    engine.dispose()


class Log:
    """A project's log, and beside it what a follower who obeyed every decision at once would know."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.keys: dict[int, UUID] = {}
        self.actions: dict[str, tuple[Action, float | None]] = {}
        self.states: dict[str, State] = {}
        self.seqs: dict[int, int] = {}
        self.versions = [uuid4().hex for _ in range(2)]
        with transaction(engine) as session:
            self.name = uuid4().hex
            projects.create(session, self.name)
            self.project = projects.by_name(session, self.name)[0]
            environments.ensure(session, self.project, [EnvironmentName("team/e", version) for version in self.versions])

    def decide(self, number: int, action: Action, reward: float | None = None) -> None:
        """As a closing transaction does: the verdict first, the number last."""
        reward = reward if action is OVERRIDE else None
        with transaction(self.engine) as session:
            key = self._key(session, number)
            verdicts.decide(session, key, verdict=Verdict.ACCEPT, action=action, reward_override=reward, cause=None)
            self.seqs[number] = decisions.append(session, self.project, [Numbered(self._decision(number, action, reward), key)])
        self._note(f"t{number}", action, reward)

    def set_state(self, at: int, state: State) -> None:
        with transaction(self.engine) as session:
            quarantine.set_state(session, "team/e", self.versions[at], None, state, author="p", note="", project=None)
        self._note_state(self.versions[at], state)

    def trim(self, horizon: int) -> None:
        with transaction(self.engine) as session:
            decisions.trim(session, self.project, horizon)

    def _key(self, session: Session, number: int) -> UUID:
        if number not in self.keys:
            self.keys[number] = uuid4()
            row = NewVerdict(self.keys[number], self.project, None, None, 0.5, 1, 1, 0, None, False, True, False, False, None, b"", None)
            verdicts.add(session, [row], [])
        return self.keys[number]

    def _decision(self, number: int, action: Action, reward: float | None) -> Decision:
        supersedes = self.seqs.get(number)
        return Decision(seq=0, scope=Scope.TRAJECTORY, action=action, trajectory=f"t{number}", reward_override=reward, supersedes=supersedes)

    def _note(self, name: str, action: Action, reward: float | None) -> None:
        self.actions.pop(name, None)
        if action is not KEEP:
            self.actions[name] = (action, reward)

    def _note_state(self, version: str, state: State) -> None:
        self.states.pop(version, None)
        if state is not State.ACTIVE:
            self.states[version] = state


class Follower:
    """What a client knows."""

    def __init__(self) -> None:
        self.actions: dict[str, tuple[Action, float | None]] = {}
        self.states: dict[str, State] = {}

    def obey(self, decision: Decision) -> None:
        if decision.action is Action.SET_STATE:
            assert decision.version is not None
            assert decision.state is not None
            self._know(self.states, decision.version, decision.state, decision.state is State.ACTIVE)
        else:
            assert decision.trajectory is not None
            self._know(self.actions, decision.trajectory, (decision.action, decision.reward_override), decision.action is KEEP)

    @staticmethod
    def _know(known: dict[str, Any], name: str, value: object, as_usual: bool) -> None:
        known.pop(name, None)
        if not as_usual:
            known[name] = value


acts = st.one_of(
    st.tuples(st.just("decide"), st.integers(0, 5), st.sampled_from([KEEP, EXCLUDE, OVERRIDE]), st.floats(-1, 1)),
    st.tuples(st.just("set_state"), st.integers(0, 1), st.sampled_from(list(State))),
    st.tuples(st.just("trim"), st.integers(1, 8)),
)


def perform(log: Log, chosen: list[tuple[Any, ...]]) -> None:
    for name, *arguments in chosen:
        getattr(log, name)(*arguments)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=st.lists(acts, max_size=20), during=st.lists(st.lists(acts, max_size=2), max_size=6), page=st.integers(1, 3))
def test_a_snapshot_and_what_comes_after_it_make_the_full_state(engine: Engine, before: list[Any], during: list[list[Any]], page: int) -> None:
    """While the snapshot is paged through, decisions go on, and the log is trimmed behind it."""
    log, follower, meanwhile = Log(engine), Follower(), iter(during)
    perform(log, before)
    with transaction(engine) as session:
        head = decisions.head(session, log.project)
        for _, standing in states.page(session, log.project, None, 100):
            follower.states[standing.version] = standing.state
    after = 0
    while True:
        with transaction(engine) as session:
            found = decisions.standing(session, log.project, head.seq, after, page)
        for decision in found:
            follower.obey(decision)
        if not found:
            break
        after = found[-1].seq
        perform(log, [act for act in next(meanwhile, []) if act[0] != "trim"])
    for rest in meanwhile:
        perform(log, [act for act in rest if act[0] != "trim"])
    for decision in read_on(engine, log.project, head.epoch, head.seq):
        follower.obey(decision)
    assert follower.actions == log.actions
    assert follower.states == log.states


def read_on(engine: Engine, project: int, epoch: UUID, after: int) -> Iterator[Decision]:
    while True:
        with transaction(engine) as session:
            _, found = decisions.page(session, project, epoch, after, 3)
        if not found:
            return
        yield from found
        after = found[-1].seq


def test_numbers_have_no_gap_and_each_decision_knows_its_own(engine: Engine) -> None:
    log, rng = Log(engine), random.Random(3)
    for _ in range(30):
        log.decide(rng.randrange(5), rng.choice([KEEP, EXCLUDE]))
    assert [d.seq for d in read_on(engine, log.project, epoch_of(engine, log.project), 0)] == list(range(1, 31))


def epoch_of(engine: Engine, project: int) -> UUID:
    with transaction(engine) as session:
        return decisions.head(session, project).epoch


def test_several_decisions_of_one_trajectory_in_one_act_leave_the_last_standing(engine: Engine) -> None:
    log = Log(engine)
    log.decide(0, EXCLUDE)
    key = log.keys[0]
    entries = [Numbered(log._decision(0, action, None), key) for action in (KEEP, OVERRIDE, EXCLUDE)]
    with transaction(engine) as session:
        decisions.append(session, log.project, entries)
        assert verdicts.stored(session, log.project, [key])[key].seq == 4


@pytest.mark.parametrize(
    ("cursor", "path"),
    [
        (lambda epoch: (uuid4(), 5), "$.epoch"),
        (lambda epoch: (epoch, 5), "$.after"),
        (lambda epoch: (epoch, 11), "$.after"),
    ],
    ids=["of a log that was restored", "behind the horizon", "from a future that was lost"],
)
def test_a_cursor_that_cannot_be_followed_is_gone(engine: Engine, cursor: Callable[[UUID], tuple[UUID, int]], path: str) -> None:
    log = Log(engine)
    for number in range(10):
        log.decide(number, EXCLUDE)
    log.trim(4)
    with transaction(engine) as session, pytest.raises(Gone) as gone:
        decisions.page(session, log.project, *cursor(epoch_of(engine, log.project)), 10)
    assert gone.value.path == path


def test_a_cursor_at_the_horizon_goes_on(engine: Engine) -> None:
    log = Log(engine)
    for number in range(10):
        log.decide(number, EXCLUDE)
    log.trim(4)
    with transaction(engine) as session:
        assert [d.seq for d in decisions.page(session, log.project, None, 6, 10)[1]] == [7, 8, 9, 10]
        assert decisions.page(session, log.project, None, 10, 10)[1] == []


def test_what_stands_outlives_the_horizon(engine: Engine) -> None:
    log = Log(engine)
    for number in range(3):
        log.decide(number, EXCLUDE)
    for _ in range(10):
        log.decide(9, EXCLUDE)
    log.trim(2)
    with transaction(engine) as session:
        assert [d.trajectory for d in decisions.standing(session, log.project, 13, 0, 10)] == ["t0", "t1", "t2", "t9"]
        assert len(decisions.history(session, log.project, log.keys[9])) == 2


def test_an_act_in_several_projects_is_numbered_in_each(engine: Engine) -> None:
    logs = [Log(engine) for _ in range(2)]
    with transaction(engine) as session:
        decision = logs[0]._decision(0, EXCLUDE, None)
        assert decisions.append_states(session, {logs[1].project: [decision], logs[0].project: [decision, decision]}) == {
            logs[0].project: 2,
            logs[1].project: 1,
        }


def posted(session: Session, log: Log, task: str) -> list[int]:
    """As intake does with a task's first trajectory: what the project is told is logged in the same transaction."""
    name = EnvironmentName("team/e", log.versions[0])
    ids = environments.ensure_tasks(session, [(environments.ensure(session, log.project, [name])[name], task)])
    begun = environments.join_tasks(session, log.project, ids.values())
    decisions.announce(session, log.project, states.new_to(session, log.project, [], begun), "first posted it")
    return begun


@pytest.mark.parametrize("first", ["the post", "the quarantine"])
def test_who_posts_a_task_while_it_is_quarantined_is_told_whichever_commits_first(engine: Engine, first: str) -> None:
    log, newcomer = Log(engine), Log(engine)
    newcomer.versions = log.versions
    with transaction(engine) as session:
        posted(session, log, "t")
    begun, release = threading.Event(), threading.Event()

    def post() -> None:
        with transaction(engine) as session:
            posted(session, newcomer, "t")
            pause("the post")

    def quarantined() -> None:
        with transaction(engine) as session:
            quarantine.set_state(session, "team/e", log.versions[0], "t", State.QUARANTINED, author="p", note="", project=None)
            pause("the quarantine")

    def pause(who: str) -> None:
        if who == first:
            begun.set()
            assert release.wait(20)

    one, other = (post, quarantined) if first == "the post" else (quarantined, post)
    with ThreadPoolExecutor(2) as pool:
        ahead = pool.submit(one)
        assert begun.wait(20)
        behind = pool.submit(other)
        waiting(engine)
        release.set()
        ahead.result(20)
        behind.result(20)
    told = list(read_on(engine, newcomer.project, epoch_of(engine, newcomer.project), 0))
    assert [(d.task, d.state) for d in told] == [("t", State.QUARANTINED)]


def waiting(engine: Engine) -> None:
    """Until some transaction waits for another's lock."""
    ends = time.monotonic() + 20
    while time.monotonic() < ends:
        with transaction(engine) as session:
            row = driver(session).execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()").fetchone()
        if row and row[0]:
            return
        time.sleep(0.01)
    raise AssertionError("nobody waits")


def test_a_page_that_is_trimmed_while_it_is_read_is_gone_and_has_no_hole(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(engine)
    for number in range(20):
        log.decide(number % 3, EXCLUDE)
    whole = decisions.head

    def head_then_trim(session: Session, project: int) -> decisions.Head:
        now = whole(session, project)
        log.trim(5)
        return now

    monkeypatch.setattr(decisions, "head", head_then_trim)
    with transaction(engine) as session, pytest.raises(Gone):
        decisions.page(session, log.project, None, 0, 10)
