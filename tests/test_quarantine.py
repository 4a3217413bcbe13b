"""States of environment versions and tasks, as people and the policy set them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from inspector import quarantine
from inspector.errors import Forbidden, Unknown
from inspector.quarantine import PROBATION_WEIGHT
from inspector.store import environments, states
from inspector.store.session import driver, transaction
from inspector.store.states import Place
from inspector.task import Declaration, State
from inspector.verdict import Action, Scope
from tests.audit.conftest import Desk, OpenDesk, episode

HERE = ("acme/terminal", "1")


def put(desk: Desk, state: State, task: str | None = None, weight: float | None = None, note: str = "", project: int | None = None) -> dict[int, int]:
    with transaction(desk.engine) as session:
        return quarantine.set_state(session, *HERE, task, state, author="person:mira", note=note, weight=weight, project=project)


def standing(desk: Desk) -> list[tuple[str | None, State, float | None]]:
    with transaction(desk.engine) as session:
        return [(s.task, s.state, s.sampling_weight) for _, s in states.page(session, desk.project.id, None, 100)]


def test_a_state_is_logged_stands_and_goes_away_with_active(desk: Desk) -> None:
    desk.post(episode("a"))
    assert put(desk, State.QUARANTINED, note="pays for nothing") == {desk.project.id: 1}
    assert standing(desk) == [(None, State.QUARANTINED, None)]
    put(desk, State.PROBATION)
    assert standing(desk) == [(None, State.PROBATION, PROBATION_WEIGHT)]
    put(desk, State.ACTIVE)
    assert standing(desk) == []
    assert [(d.seq, d.action, d.state) for d in desk.feed()] == [
        (1, Action.SET_STATE, State.QUARANTINED),
        (2, Action.SET_STATE, State.PROBATION),
        (3, Action.SET_STATE, State.ACTIVE),
    ]
    assert desk.feed()[0].reasons == ("active -> quarantined: pays for nothing",)


def test_a_task_has_a_state_of_its_own(desk: Desk) -> None:
    desk.post(episode("a"))
    put(desk, State.QUARANTINED, task="fix-nginx")
    assert standing(desk) == [("fix-nginx", State.QUARANTINED, None)]
    assert [(d.scope, d.task) for d in desk.feed()] == [(Scope.TASK, "fix-nginx")]


@pytest.mark.parametrize("task", [None, "fix-nginx"])
def test_what_a_project_does_not_see_it_cannot_set(open_desk: OpenDesk, task: str | None) -> None:
    ours, strangers = open_desk(), open_desk(name="beta")
    ours.post(episode("a"))
    with pytest.raises(Unknown):
        put(strangers, State.QUARANTINED, task=task, project=strangers.project.id)
    assert standing(ours) == []


def test_an_unknown_task_is_refused(desk: Desk) -> None:
    desk.post(episode("a"))
    with pytest.raises(Unknown):
        put(desk, State.QUARANTINED, task="another")


def test_the_policy_watches_only_what_is_active(desk: Desk) -> None:
    desk.post(episode("a"))
    put(desk, State.QUARANTINED)
    with transaction(desk.engine) as session:
        assert quarantine.watch(session, *HERE, "too much") == {}
    put(desk, State.ACTIVE)
    with transaction(desk.engine) as session:
        assert quarantine.watch(session, *HERE, "too much") == {desk.project.id: 3}
    assert standing(desk) == [(None, State.WATCH, None)]


def test_people_who_set_states_at_once_leave_one_story(open_desk: OpenDesk) -> None:
    """Of two projects' feeds; what each tells last is what stands, and what was before is what stood then."""
    desks = [open_desk(name=name) for name in ("alpha", "beta")]
    for desk in desks:
        desk.post(episode("a"))
    states = [State.QUARANTINED, State.PROBATION, State.RETIRED, State.WATCH] * 3
    together = threading.Barrier(len(states))

    def act(state: State) -> None:
        together.wait(60)
        put(desks[0], state)

    with ThreadPoolExecutor(len(states)) as pool:
        list(pool.map(act, states))
    stories = [[(d.seq, d.state, d.reasons) for d in desk.feed()] for desk in desks]
    assert stories[0] == stories[1]
    assert [seq for seq, _, _ in stories[0]] == list(range(1, len(states) + 1))
    assert standing(desks[0])[0][1] is stories[0][-1][1]
    with transaction(desks[0].engine) as session:
        changes = driver(session).execute("SELECT before, after FROM state_change ORDER BY id").fetchall()
    assert [before for before, _ in changes] == ["active", *(after for _, after in changes[:-1])]


def test_a_project_that_posts_a_quarantined_version_for_the_first_time_is_told(open_desk: OpenDesk) -> None:
    first, second = open_desk(), open_desk(name="beta")
    first.post(episode("a"))
    put(first, State.QUARANTINED)
    second.post(episode("a"))
    second.post(episode("b"))
    [told] = second.feed()
    assert (told.action, told.state, told.environment, told.version) == (Action.SET_STATE, State.QUARANTINED, "acme/terminal", "1")


# --- who decides for whom --------------------------------------------------------------------------------------------


@pytest.fixture
def two(open_desk: OpenDesk) -> tuple[Desk, Desk]:
    """The owner of an environment version that both posted, and another project."""
    owner, other = open_desk(), open_desk(name="beta")
    for desk in (owner, other):
        desk.post(episode("a"))
    owner.declare(Declaration())
    return owner, other


def test_its_owner_decides_for_all(two: tuple[Desk, Desk]) -> None:
    owner, other = two
    assert put(owner, State.QUARANTINED, project=owner.project.id).keys() == {owner.project.id, other.project.id}
    assert standing(owner) == standing(other) == [(None, State.QUARANTINED, None)]


@pytest.mark.parametrize("task", [None, "fix-nginx"])
def test_another_project_decides_for_itself_alone(two: tuple[Desk, Desk], task: str | None) -> None:
    owner, other = two
    assert put(other, State.QUARANTINED, task, project=other.project.id).keys() == {other.project.id}
    assert (standing(owner), owner.feed()) == ([], [])
    assert standing(other) == [(task, State.QUARANTINED, None)]
    assert put(other, State.ACTIVE, task, project=other.project.id).keys() == {other.project.id}
    assert [d.state for d in other.feed()] == [State.QUARANTINED, State.ACTIVE]
    assert standing(other) == []


def test_of_two_first_declarations_at_once_one_waits_and_finds_it_owned(open_desk: OpenDesk) -> None:
    one, other = open_desk(), open_desk(name="beta")
    with transaction(one.engine) as session:
        [id_] = environments.make(session, [environments.EnvironmentName("acme/new", "1")]).values()
    with ThreadPoolExecutor(1) as pool, transaction(one.engine) as first, transaction(other.engine) as second:
        environments.join(first, one.project.id, [id_])
        environments.join(second, other.project.id, [id_])
        driver(first).execute("SET LOCAL lock_timeout = '2s'")
        environments.lock(first, id_)
        waiting = pool.submit(environments.lock, second, id_)
        environments.declare(first, one.project.id, id_, Declaration())
        first.commit()
        waiting.result(60)
        assert not environments.owns(second, other.project.id, id_)


def test_what_nobody_declared_each_project_decides_for_itself(open_desk: OpenDesk) -> None:
    first, second = open_desk(), open_desk(name="beta")
    for desk in (first, second):
        desk.post(episode("a"))
    put(first, State.QUARANTINED, project=first.project.id)
    assert (standing(first), standing(second)) == ([(None, State.QUARANTINED, None)], [])


def test_a_project_may_be_stricter_than_what_holds_for_all_but_not_laxer(two: tuple[Desk, Desk]) -> None:
    owner, other = two
    put(owner, State.PROBATION, project=owner.project.id)
    with pytest.raises(Forbidden, match="probation for all"):
        put(other, State.ACTIVE, project=other.project.id)
    put(other, State.QUARANTINED, project=other.project.id)
    assert (standing(owner)[0][1], standing(other)[0][1]) == (State.PROBATION, State.QUARANTINED)
    put(owner, State.ACTIVE, project=owner.project.id)
    assert standing(other) == [(None, State.QUARANTINED, None)], "its own"
    assert [d.state for d in other.feed()] == [State.PROBATION, State.QUARANTINED, State.QUARANTINED], "the feed says what it is to obey"


def test_a_task_that_a_project_never_posted_is_named_to_it_nowhere(two: tuple[Desk, Desk]) -> None:
    owner, other = two
    owner.post(episode("b", task={"id": "secret"}))
    assert put(owner, State.QUARANTINED, "secret", project=owner.project.id).keys() == {owner.project.id}
    assert (standing(other), other.feed()) == ([], [])
    with pytest.raises(Unknown):
        put(other, State.QUARANTINED, "secret", project=other.project.id)
    third_task = episode("c", task={"id": "secret"})
    other.post(third_task)
    other.post(episode("d", task={"id": "secret"}))
    assert [(d.scope, d.task, d.state) for d in other.feed()] == [(Scope.TASK, "secret", State.QUARANTINED)], "told once, with its first post of it"
    assert standing(other) == [("secret", State.QUARANTINED, None)]


def test_states_are_paged(desk: Desk) -> None:
    tasks = [f"t{at}" for at in range(5)]
    desk.post(*(episode(task, task={"id": task}) for task in tasks))
    for task in tasks:
        put(desk, State.RETIRED, task)
    put(desk, State.WATCH)
    found, after = [], None
    with transaction(desk.engine) as session:
        while page := states.page(session, desk.project.id, after, 2):
            assert len(page) <= 2
            found += [s.task for _, s in page]
            after = Place(*page[-1][0])
    assert found == [None, *tasks]
