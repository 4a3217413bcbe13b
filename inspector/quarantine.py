"""Changes the state of an environment version or of one of its tasks, and tells the projects that are to obey it.

Whoever declared an environment version decides for all, and so does the installation's admin; any other project that
posted it decides for itself alone, and may only be stricter than what holds for all.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sqlmodel import Session

from inspector import standing
from inspector.errors import Forbidden
from inspector.standing import DEFAULT, Why
from inspector.store import decisions, environments, standings, states
from inspector.store.environments import EnvironmentName
from inspector.store.standings import Place
from inspector.store.states import Standing, Weighted
from inspector.task import State, stricter
from inspector.verdict import Decision

PROBATION_WEIGHT = DEFAULT.probation_weight  # of the usual sampling, where nobody says otherwise
POLICY = "policy:standing"
ASK_S = 300.0  # between two looks at what a person was asked to quarantine


class _Change(NamedTuple):
    """One act."""

    environment_version: int
    task: int | None
    wanted: Weighted
    author: str
    note: str
    why: Why
    held: bool = False  # by a person
    share: float | None = None  # of the hour's training weight, where nobody asked for it


def set_state(
    session: Session,
    environment: str,
    version: str,
    task: str | None,
    state: State,
    *,
    author: str,
    note: str,
    weight: float | None = None,
    hold: bool | None = None,
    why: Why = Why.PERSON,
    project: int | None,
) -> dict[int, int]:
    """Put it in a state, on behalf of a project (None: of the installation); the feed head of each project that was told.

    What a person sets for all is theirs, and no evidence moves it, until somebody sets a state without `hold`; `active` is
    handed back at once where nobody says otherwise.
    Raises Unknown for what `project` does not see, and Forbidden where it would be laxer than what holds for all.
    """
    environment_version = environments.find(session, project, environment, version)
    task_id = environments.find_task(session, project, environment_version, task) if task is not None else None
    environments.lock(session, environment_version)  # two acts at once come one after the other
    held = why is Why.PERSON and (state is not State.ACTIVE if hold is None else hold)
    change = _Change(environment_version, task_id, _weighted(state, weight), author, note, why, held)
    if project is None or environments.declared_by(session, environment_version) == project:
        obeyed = _for_all(session, change)
    else:
        obeyed = _for_itself(session, project, change, f"{environment}@{version}" if task is None else f"task {task!r} of {environment}@{version}")
    entries = _entries(environment, version, task, obeyed, author, note)
    return decisions.append_states(session, {id_: [entry] for id_, entry in entries.items()})


def _weighted(state: State, weight: float | None = None) -> Weighted:
    return Weighted(state, PROBATION_WEIGHT if state is State.PROBATION and weight is None else weight)


def move(session: Session, name: EnvironmentName, place: Place, task: str | None, to: standing.Move, *, share: float | None = None) -> dict[int, int]:
    """Put it in the state that its evidence asks for, for everybody; the feed head of each project that was told. Its rows are locked already."""
    change = _Change(place.environment_version, place.task or None, _weighted(to.after), POLICY, to.note, to.why, share=share)
    entries = _entries(name.environment, name.version, task, _for_all(session, change), POLICY, to.note)
    return decisions.append_states(session, {project: [entry] for project, entry in entries.items()})


class Move(NamedTuple):
    """Where a probe would put a task, and why."""

    task: str
    state: State
    note: str
    why: Why = Why.PROBE


def move_tasks(session: Session, environment: str, version: str, moves: Iterable[Move], *, author: str, since: datetime) -> dict[int, int]:
    """Put tasks in stricter states than they are in, for everybody; the feed head of each project that was told.

    What is as strict already stays as it is, and so does what a person holds or has set since then.
    """
    moves = list(moves)
    environment_version = environments.find(session, None, environment, version)
    environments.lock(session, environment_version)
    ids = [environments.find_task(session, None, environment_version, move.task) for move in moves]
    states.lock_tasks(session, ids)  # all before the evidence of any: whoever closes audits takes them in this order
    told: dict[int, list[Decision]] = {}
    for task, move in zip(ids, moves, strict=True):
        now = states.of_all(session, environment_version, task).state
        if stricter(now, move.state) is now or states.set_by_person(session, environment_version, task, since):
            continue
        if standings.held(session, Place(environment_version, task)):
            continue
        obeyed = _for_all(session, _Change(environment_version, task, Weighted(move.state, None), author, move.note, move.why))
        for project, entry in _entries(environment, version, move.task, obeyed, author, move.note).items():
            told.setdefault(project, []).append(entry)
    return decisions.append_states(session, told)


def _entries(environment: str, version: str, task: str | None, obeyed: dict[int, tuple[Weighted, Weighted]], author: str, note: str) -> dict[int, Decision]:
    """What each project's feed says of a change."""
    return {
        project: decisions.of_state(
            Standing(environment, version, task, *now), author=author, reason=f"{before.state.value} -> {now.state.value}" + (f": {note}" if note else "")
        )
        for project, (before, now) in obeyed.items()
    }


def decides_for_all(session: Session, project: int | None, environment: str, version: str) -> bool:
    """Whether what this project (None: the installation) sets holds for everybody."""
    return project is None or environments.declared_by(session, environments.find(session, project, environment, version)) == project


def _for_all(session: Session, change: _Change) -> dict[int, tuple[Weighted, Weighted]]:
    """By project: what it obeyed before, and what it obeys now."""
    before = states.set_for_all(session, change.environment_version, change.task, change.wanted, author=change.author, note=change.note, share=change.share)
    _begin(session, change)
    told = states.told(session, change.environment_version, change.task)
    own = states.own_of_all(session, told, change.environment_version, change.task)
    return {project: (states.together(before, own.get(project)), states.together(change.wanted, own.get(project))) for project in told}


def _begin(session: Session, change: _Change) -> None:
    """What is counted from now on speaks of this state; under watch the counting goes on."""
    expires = datetime.now(UTC) + timedelta(seconds=DEFAULT.expiry_s) if change.wanted.state is State.QUARANTINED and not change.held else None
    place = Place(change.environment_version, change.task or states.WHOLE)
    due_at = datetime.now(UTC) + timedelta(seconds=ASK_S) if change.why is Why.FLEET else expires
    standings.began(session, place, change.why, held=change.held, fresh=change.wanted.state is not State.WATCH, due_at=due_at)


def _for_itself(session: Session, project: int, change: _Change, name: str) -> dict[int, tuple[Weighted, Weighted]]:
    for_all = states.of_all(session, change.environment_version, change.task)
    if stricter(change.wanted.state, for_all.state) is not change.wanted.state:
        raise Forbidden(f"{name} is {for_all.state.value} for all: whoever declared it, or the admin, may make it {change.wanted.state.value}")
    before = states.set_for_project(session, project, change.environment_version, change.task, change.wanted, author=change.author, note=change.note)
    return {project: (before, states.of(session, project, change.environment_version, change.task))}


def watch(session: Session, environment: str, version: str, reason: str) -> dict[int, int]:
    """Put an active environment version on watch; nothing happens to one that is in another state."""
    environment_version = environments.find(session, None, environment, version)
    environments.lock(session, environment_version)  # a person may be quarantining it at this moment
    if states.of_all(session, environment_version).state is not State.ACTIVE or standings.held(session, Place(environment_version, states.WHOLE)):
        return {}
    return set_state(session, environment, version, None, State.WATCH, author="policy", note=reason, why=Why.CHECK, project=None)
