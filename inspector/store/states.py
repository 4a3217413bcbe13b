"""States of environment versions and tasks: those that hold for everybody, and the stricter ones of single projects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlmodel import Session

from inspector.errors import Unknown
from inspector.store.session import driver
from inspector.task import State, stricter

WHOLE = 0  # in the place of a task: the environment version itself
EVERY = 100_000  # more states than the tasks of one environment version have


class Standing(NamedTuple):
    """The state of an environment version, or of one of its tasks."""

    environment: str
    version: str
    task: str | None
    state: State
    sampling_weight: float | None


class Weighted(NamedTuple):
    """A state with its sampling weight."""

    state: State
    sampling_weight: float | None


ACTIVE = Weighted(State.ACTIVE, None)


class Place(NamedTuple):
    """Where in the list of a project's states something stands; ids of rows."""

    environment_version: int
    task: int


def together(for_all: Weighted, own: Weighted | None) -> Weighted:
    """What a project is to obey: the stricter state, and of equal ones the smaller weight."""
    if own is None:
        return for_all
    if own.state is for_all.state:
        return Weighted(own.state, min((w for w in (own.sampling_weight, for_all.sampling_weight) if w is not None), default=None))
    return own if stricter(own.state, for_all.state) is own.state else for_all


def of_all(session: Session, environment_version: int, task: int | None = None) -> Weighted:
    """What holds for everybody."""
    table, id_ = ("environment_version", environment_version) if task is None else ("task", task)
    row = driver(session).execute(f"SELECT state, sampling_weight FROM {table} WHERE id = %s", (id_,)).fetchone()
    if row is None:
        raise Unknown("task" if task is not None else "environment version", id_)
    return Weighted(State(row[0]), row[1])


def own(session: Session, project: int, environment_version: int, task: int | None = None) -> Weighted | None:
    """What a project set for itself."""
    return own_of_all(session, [project], environment_version, task).get(project)


def own_of_all(session: Session, projects: Sequence[int], environment_version: int, task: int | None = None) -> dict[int, Weighted]:
    """What each of these projects set for itself; most set nothing."""
    rows = driver(session).execute(
        "SELECT project, state, sampling_weight FROM project_state WHERE project = ANY(%s) AND environment_version = %s AND task = %s",
        (list(projects), environment_version, task or WHOLE),
    )
    return {project: Weighted(State(state), weight) for project, state, weight in rows.fetchall()}


def of(session: Session, project: int | None, environment_version: int, task: int | None = None) -> Weighted:
    """What a project is to obey; for `project` None what holds for everybody."""
    for_all = of_all(session, environment_version, task)
    return for_all if project is None else together(for_all, own(session, project, environment_version, task))


def set_for_all(
    session: Session, environment_version: int, task: int | None, wanted: Weighted, *, author: str, note: str, share: float | None = None
) -> Weighted:
    """Change a state for everybody, keep who did it and why; the state before is returned."""
    table, id_ = ("environment_version", environment_version) if task is None else ("task", task)
    connection = driver(session)
    before = connection.execute(f"SELECT state, sampling_weight FROM {table} WHERE id = %s FOR NO KEY UPDATE", (id_,)).fetchone()
    if before is None:
        raise Unknown("environment version" if task is None else "task", id_)
    connection.execute(f"UPDATE {table} SET state = %s, sampling_weight = %s WHERE id = %s", (wanted.state.value, wanted.sampling_weight, id_))
    _remember(session, None, environment_version, task, before[0], wanted.state, author, note, share)
    return Weighted(State(before[0]), before[1])


def set_for_project(session: Session, project: int, environment_version: int, task: int | None, wanted: Weighted, *, author: str, note: str) -> Weighted:
    """Change a state for one project alone, keep who did it and why; what the project obeyed before is returned."""
    before = of(session, project, environment_version, task)
    place = (project, environment_version, task or WHOLE)
    if wanted.state is State.ACTIVE:
        driver(session).execute("DELETE FROM project_state WHERE project = %s AND environment_version = %s AND task = %s", place)
    else:
        driver(session).execute(
            "INSERT INTO project_state (project, environment_version, task, state, sampling_weight) VALUES (%s, %s, %s, %s, %s)"
            " ON CONFLICT (project, environment_version, task) DO UPDATE SET state = excluded.state, sampling_weight = excluded.sampling_weight",
            (*place, wanted.state.value, wanted.sampling_weight),
        )
    _remember(session, project, environment_version, task, before.state.value, wanted.state, author, note)
    return before


def _remember(
    session: Session, project: int | None, version: int, task: int | None, before: str, after: State, author: str, note: str, share: float | None = None
) -> None:
    driver(session).execute(
        "INSERT INTO state_change (project, environment_version, task, before, after, author, note, share) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
        (project, version, task, before, after.value, author, note, share),
    )


class Change(NamedTuple):
    """A change of state that holds for all, as it was logged."""

    before: State
    after: State
    author: str
    note: str
    changed_at: datetime


def changes(session: Session, environment_version: int, task: int | None, limit: int = 50) -> list[Change]:
    """The last changes that hold for all, the newest first."""
    rows = driver(session).execute(
        "SELECT before, after, author, note, changed_at FROM state_change WHERE environment_version = %s AND task IS NOT DISTINCT FROM %s"
        " AND project IS NULL ORDER BY id DESC LIMIT %s",
        (environment_version, task, limit),
    )
    return [Change(State(before), State(after), *rest) for before, after, *rest in rows.fetchall()]


def lock_tasks(session: Session, tasks: Iterable[int]) -> None:
    """Until the transaction ends nobody else changes these tasks."""
    driver(session).execute("SELECT FROM task WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE", (sorted(set(tasks)),))


def set_by_person(session: Session, environment_version: int, task: int, since: datetime) -> bool:
    """Whether a person set a task's state for everybody since then."""
    row = (
        driver(session)
        .execute(
            "SELECT EXISTS (SELECT FROM state_change WHERE environment_version = %s AND task = %s AND project IS NULL AND author LIKE 'person:%%'"
            " AND changed_at > %s)",
            (environment_version, task, since),
        )
        .fetchone()
    )
    return row is not None and bool(row[0])


def told(session: Session, environment_version: int, task: int | None = None) -> list[int]:
    """The projects that posted it, and for a task the one that declared its environment version; in the order in which their feeds are to be taken.

    To be asked when the state is set and before the commit: who posts it first at this moment waits for that row, or has come before.
    """
    rows = driver(session).execute(
        "SELECT p.project FROM project_environment p WHERE p.environment_version = %(version)s AND (%(task)s::bigint IS NULL OR p.owner"
        " OR EXISTS (SELECT FROM project_task t WHERE t.project = p.project AND t.task = %(task)s)) ORDER BY p.project",
        {"version": environment_version, "task": task},
    )
    return [int(row[0]) for row in rows.fetchall()]


def page(session: Session, project: int, after: Place | None, limit: int) -> list[tuple[Place, Standing]]:
    """States other than `active` that a project has to obey, by the ids of what they are about: of tasks, those that it posted or declared."""
    rows = driver(session).execute(
        "WITH places AS ("
        "SELECT v.id AS version, 0::bigint AS task FROM project_environment p JOIN environment_version v ON v.id = p.environment_version"
        " WHERE p.project = %(project)s AND v.state <> 'active'"
        " UNION SELECT t.environment_version, t.id FROM project_environment p JOIN task t ON t.environment_version = p.environment_version"
        " WHERE p.project = %(project)s AND t.state <> 'active'"
        " AND (p.owner OR EXISTS (SELECT FROM project_task r WHERE r.project = p.project AND r.task = t.id))"
        " UNION SELECT environment_version, task FROM project_state WHERE project = %(project)s),"
        " paged AS (SELECT * FROM places WHERE (version, task) > (%(version)s, %(task)s) ORDER BY version, task LIMIT %(limit)s)"
        " SELECT paged.version, paged.task, v.environment, v.version, t.task, coalesce(t.state, v.state), CASE WHEN t.id IS NULL THEN v.sampling_weight"
        " ELSE t.sampling_weight END, o.state, o.sampling_weight FROM paged JOIN environment_version v ON v.id = paged.version"
        " LEFT JOIN task t ON t.id = paged.task LEFT JOIN project_state o ON o.project = %(project)s"
        " AND o.environment_version = paged.version AND o.task = paged.task ORDER BY paged.version, paged.task",
        {"project": project, "limit": limit, **(after or Place(0, 0))._asdict(), "version": after.environment_version if after else 0},
    )
    return [_stands(*row) for row in rows.fetchall()]


def _stands(
    version_id: int, task_id: int, environment: str, version: str, task: str | None, state: str, weight: float | None, own: str | None, own_weight: float | None
) -> tuple[Place, Standing]:
    obeyed = together(Weighted(State(state), weight), Weighted(State(own), own_weight) if own is not None else None)
    return Place(version_id, task_id), Standing(environment, version, task, *obeyed)


def new_to(session: Session, project: int, joined: Sequence[int], tasks: Sequence[int]) -> list[Standing]:
    """States other than `active` that a project has to obey, of versions and tasks that it just joined.

    Whoever changes one of these states meanwhile waits, and then sees who joined.
    """
    connection = driver(session)
    if joined:
        connection.execute("SELECT FROM environment_version WHERE id = ANY(%s) ORDER BY id FOR SHARE", (list(joined),))
    if tasks:
        connection.execute("SELECT FROM task WHERE id = ANY(%s) ORDER BY id FOR SHARE", (list(tasks),))
    rows = connection.execute(
        "SELECT v.id, 0::bigint, v.environment, v.version, NULL, v.state, v.sampling_weight, o.state, o.sampling_weight FROM environment_version v"
        " LEFT JOIN project_state o ON o.project = %(project)s AND o.environment_version = v.id AND o.task = 0"
        " WHERE v.id = ANY(%(joined)s) AND v.state <> 'active'"
        " UNION ALL SELECT v.id, t.id, v.environment, v.version, t.task, t.state, t.sampling_weight, o.state, o.sampling_weight FROM task t"
        " JOIN environment_version v ON v.id = t.environment_version"
        " LEFT JOIN project_state o ON o.project = %(project)s AND o.environment_version = v.id AND o.task = t.id"
        " WHERE t.id = ANY(%(tasks)s) AND t.state <> 'active' ORDER BY 1, 2",
        {"project": project, "joined": list(joined), "tasks": list(tasks)},
    )
    return [_stands(*row)[1] for row in rows.fetchall()]


def of_version(session: Session, project: int, environment_version: int) -> list[Standing]:
    """States other than `active` that a project has to obey, of an environment version and of its tasks."""
    found = page(session, project, Place(environment_version, -1), EVERY)
    return [standing for place, standing in found if place.environment_version == environment_version]


def of_tasks(session: Session, places: Iterable[tuple[int, int]]) -> Mapping[tuple[int, int], State]:
    """By (project, task): the strictest of the states that hold there; those that are active are not there."""
    pairs = sorted(set(places))
    rows = driver(session).execute(
        "SELECT a.project, t.id, t.state, v.state, own_task.state, own_version.state FROM unnest(%s::bigint[], %s::bigint[]) AS a(project, task)"
        " JOIN task t ON t.id = a.task JOIN environment_version v ON v.id = t.environment_version"
        " LEFT JOIN project_state own_task ON own_task.project = a.project AND own_task.environment_version = v.id AND own_task.task = t.id"
        " LEFT JOIN project_state own_version ON own_version.project = a.project AND own_version.environment_version = v.id AND own_version.task = 0",
        ([project for project, _ in pairs], [task for _, task in pairs]),
    )
    found = {}
    for project, task, *states in rows.fetchall():
        strictest = State.ACTIVE
        for state in states:
            strictest = stricter(strictest, State(state)) if state is not None else strictest
        if strictest is not State.ACTIVE:
            found[project, task] = strictest
    return found
