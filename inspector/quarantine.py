"""Changes the state of an environment version or of one of its tasks, and tells the projects that are to obey it.

Whoever declared an environment version decides for all, and so does the installation's admin; any other project that
posted it decides for itself alone, and may only be stricter than what holds for all.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from sqlmodel import Session

from inspector.errors import Forbidden
from inspector.store import decisions, environments, states
from inspector.store.states import Standing, Weighted
from inspector.task import State, stricter
from inspector.verdict import Decision

PROBATION_WEIGHT = 0.25  # of the usual sampling, where nobody says otherwise


class _Change(NamedTuple):
    """One act."""

    environment_version: int
    task: int | None
    wanted: Weighted
    author: str
    note: str


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
    project: int | None,
) -> dict[int, int]:
    """Put it in a state, on behalf of a project (None: of the installation); the feed head of each project that was told.

    Raises Unknown for what `project` does not see, and Forbidden where it would be laxer than what holds for all.
    """
    environment_version = environments.find(session, project, environment, version)
    task_id = environments.find_task(session, project, environment_version, task) if task is not None else None
    environments.lock(session, environment_version)  # two acts at once come one after the other
    wanted = Weighted(state, PROBATION_WEIGHT if state is State.PROBATION and weight is None else weight)
    change = _Change(environment_version, task_id, wanted, author, note)
    if project is None or environments.declared_by(session, environment_version) == project:
        obeyed = _for_all(session, change)
    else:
        obeyed = _for_itself(session, project, change, f"{environment}@{version}" if task is None else f"task {task!r} of {environment}@{version}")
    entries = _entries(environment, version, task, obeyed, author, note)
    return decisions.append_states(session, {id_: [entry] for id_, entry in entries.items()})


class Move(NamedTuple):
    """Where a probe would put a task, and why."""

    task: str
    state: State
    note: str


def move_tasks(session: Session, environment: str, version: str, moves: Iterable[Move], *, author: str, since: datetime) -> dict[int, int]:
    """Put tasks in stricter states than they are in, for everybody; the feed head of each project that was told.

    What is as strict already stays as it is, and so does what a person has set since then.
    """
    environment_version = environments.find(session, None, environment, version)
    environments.lock(session, environment_version)
    told: dict[int, list[Decision]] = {}
    for move in moves:
        task = environments.find_task(session, None, environment_version, move.task)
        now = states.of_all(session, environment_version, task).state
        if stricter(now, move.state) is now or states.set_by_person(session, environment_version, task, since):
            continue
        obeyed = _for_all(session, _Change(environment_version, task, Weighted(move.state, None), author, move.note))
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
    before = states.set_for_all(session, change.environment_version, change.task, change.wanted, author=change.author, note=change.note)
    told = states.told(session, change.environment_version, change.task)
    own = states.own_of_all(session, told, change.environment_version, change.task)
    return {project: (states.together(before, own.get(project)), states.together(change.wanted, own.get(project))) for project in told}


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
    if states.of_all(session, environment_version).state is not State.ACTIVE:
        return {}
    return set_state(session, environment, version, None, State.WATCH, author="policy", note=reason, project=None)
