"""Environment versions and tasks of the installation: what is declared of them and which state they are in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from sqlmodel import Session

from inspector.errors import Unknown
from inspector.store.packages import Scores, scores_of
from inspector.store.session import driver
from inspector.task import UNDECLARED, Declaration, State


class EnvironmentName(NamedTuple):
    """An environment version as the wire names it."""

    environment: str
    version: str


class EnvironmentSummary(NamedTuple):
    """An environment version as it is listed."""

    id: int
    environment: str
    version: str
    state: State
    sampling_weight: float | None
    declared: bool
    owner: bool
    scores: Scores


def ensure(session: Session, project: int, names: Iterable[EnvironmentName]) -> dict[EnvironmentName, int]:
    """Ids of environment versions, made where they were not known, and visible to this project from now on."""
    found = make(session, names)
    join(session, project, found.values())
    return found


def make(session: Session, names: Iterable[EnvironmentName]) -> dict[EnvironmentName, int]:
    """Ids of environment versions, made where they were not known."""
    wanted = sorted(set(names))
    if not wanted:
        return {}
    environments, versions = [name.environment for name in wanted], [name.version for name in wanted]
    connection = driver(session)
    connection.execute(
        "INSERT INTO environment_version (environment, version) SELECT * FROM unnest(%s::text[], %s::text[]) ON CONFLICT DO NOTHING", (environments, versions)
    )
    rows = connection.execute(
        "SELECT environment, version, id FROM environment_version JOIN unnest(%s::text[], %s::text[]) AS wanted(e, v) ON environment = e AND version = v",
        (environments, versions),
    ).fetchall()
    return {EnvironmentName(environment, version): id_ for environment, version, id_ in rows}


def join(session: Session, project: int, versions: Iterable[int]) -> list[int]:
    """Make environment versions visible to a project; those that it did not see before."""
    rows = driver(session).execute(
        "INSERT INTO project_environment (project, environment_version) SELECT %s, id FROM unnest(%s::bigint[]) AS id ORDER BY id"
        " ON CONFLICT DO NOTHING RETURNING environment_version",
        (project, sorted(versions)),
    )
    return [int(row[0]) for row in rows.fetchall()]


def join_tasks(session: Session, project: int, tasks: Iterable[int]) -> list[int]:
    """A project posts these tasks: from now on it is told of their states; those that it had not posted before, in their order."""
    rows = driver(session).execute(
        "INSERT INTO project_task (project, task) SELECT %s, id FROM unnest(%s::bigint[]) AS id ORDER BY id ON CONFLICT DO NOTHING RETURNING task",
        (project, sorted(tasks)),
    )
    return sorted(int(row[0]) for row in rows.fetchall())


def ensure_tasks(session: Session, tasks: Iterable[tuple[int, str]]) -> dict[tuple[int, str], int]:
    """Ids of (environment version, task) pairs, made where they were not known."""
    wanted = sorted(set(tasks))
    if not wanted:
        return {}
    versions, names = [version for version, _ in wanted], [name for _, name in wanted]
    connection = driver(session)
    connection.execute("INSERT INTO task (environment_version, task) SELECT * FROM unnest(%s::bigint[], %s::text[]) ON CONFLICT DO NOTHING", (versions, names))
    rows = connection.execute(
        "SELECT environment_version, task, id FROM task JOIN unnest(%s::bigint[], %s::text[]) AS wanted(e, t) ON environment_version = e AND task = t",
        (versions, names),
    ).fetchall()
    return {(version, name): id_ for version, name, id_ in rows}


def find(session: Session, project: int | None, environment: str, version: str) -> int:
    """The id of an environment version that this project has posted or declared; any, for `project` None. Raises Unknown."""
    row = (
        driver(session)
        .execute(
            "SELECT v.id FROM environment_version v WHERE environment = %s AND version = %s"
            " AND (%s::bigint IS NULL OR EXISTS (SELECT FROM project_environment p WHERE p.environment_version = v.id AND p.project = %s))",
            (environment, version, project, project),
        )
        .fetchone()
    )
    if row is None:
        raise Unknown("environment version", f"{environment}@{version}")
    return int(row[0])


def versions_of(session: Session, project: int, environment: str, version: str | None) -> list[int]:
    """The ids of an environment's versions that this project has posted or declared, or of one. Raises Unknown where there is none."""
    rows = driver(session).execute(
        "SELECT v.id FROM environment_version v JOIN project_environment p ON p.environment_version = v.id AND p.project = %s"
        " WHERE v.environment = %s AND (%s::text IS NULL OR v.version = %s) ORDER BY v.id",
        (project, environment, version, version),
    )
    found = [int(row[0]) for row in rows.fetchall()]
    if not found:
        raise Unknown("environment", environment if version is None else f"{environment}@{version}")
    return found


def tasks_named(session: Session, versions: Sequence[int], task: str) -> list[int]:
    """The ids of the tasks of that name in these environment versions. Raises Unknown where there is none."""
    rows = driver(session).execute("SELECT id FROM task WHERE environment_version = ANY(%s) AND task = %s ORDER BY id", (list(versions), task))
    found = [int(row[0]) for row in rows.fetchall()]
    if not found:
        raise Unknown("task", task)
    return found


def find_task(session: Session, project: int | None, environment_version: int, task: str) -> int:
    """The id of a task that this project has posted, or whose environment version no other one declared; any, for `project` None. Raises Unknown."""
    row = (
        driver(session)
        .execute(
            "SELECT id, EXISTS (SELECT FROM project_task r WHERE r.project = %s AND r.task = t.id) FROM task t WHERE environment_version = %s AND task = %s",
            (project, environment_version, task),
        )
        .fetchone()
    )
    if row is None or not (project is None or row[1] or owns(session, project, environment_version)):
        raise Unknown("task", task)
    return int(row[0])


def lock(session: Session, environment_version: int) -> None:
    """Until the transaction ends nobody else declares it or changes its state."""
    # Not stronger: two who have just joined it each hold the row that they refer to, and would wait for each other.
    driver(session).execute("SELECT FROM environment_version WHERE id = %s FOR NO KEY UPDATE", (environment_version,))


def owns(session: Session, project: int, environment_version: int) -> bool:
    """Whether this project declared it first, or nobody has declared it yet."""
    row = (
        driver(session)
        .execute(
            "SELECT coalesce(bool_or(owner AND project = %s), false), coalesce(bool_or(owner), false) FROM project_environment WHERE environment_version = %s",
            (project, environment_version),
        )
        .fetchone()
    )
    return row is not None and bool(row[0] or not row[1])


def declared_by(session: Session, environment_version: int) -> int | None:
    """The project that owns an environment version; None where nobody has declared it yet."""
    row = driver(session).execute("SELECT project FROM project_environment WHERE environment_version = %s AND owner", (environment_version,)).fetchone()
    return None if row is None else int(row[0])


def declare(session: Session, project: int, environment_version: int, declaration: Declaration) -> bool:
    """Store a declaration; the first project to declare an environment version owns it. Whether it does only now."""
    connection = driver(session)
    connection.execute(
        "UPDATE environment_version SET declaration = %s, declared_at = clock_timestamp() WHERE id = %s",
        (msgspec.json.encode(declaration), environment_version),
    )
    return own(session, project, environment_version)


def own(session: Session, project: int, environment_version: int) -> bool:
    """A version that nobody owned is this project's from now on; False where it was before."""
    owned = driver(session).execute(
        "UPDATE project_environment SET owner = true WHERE project = %s AND environment_version = %s AND NOT owner", (project, environment_version)
    )
    return owned.rowcount == 1


def declare_task(session: Session, task: int, declaration: Declaration) -> None:
    """Store what a task overrides of its environment version's declaration."""
    driver(session).execute("UPDATE task SET declaration = %s WHERE id = %s", (msgspec.json.encode(declaration), task))


def declarations(session: Session, tasks: Iterable[int]) -> dict[int, Declaration]:
    """What holds for each task: its environment version's declaration with its own over it."""
    rows = (
        driver(session)
        .execute(
            "SELECT t.id, e.declaration, t.declaration FROM task t JOIN environment_version e ON e.id = t.environment_version WHERE t.id = ANY(%s)",
            (sorted(set(tasks)),),
        )
        .fetchall()
    )
    return {task: decode(of_version).overridden_by(decode(own)) if own else decode(of_version) for task, of_version, own in rows}


def declaration(session: Session, environment_version: int, task: int | None = None) -> Declaration:
    """As it was declared, not merged."""
    query = "SELECT declaration FROM task WHERE id = %s" if task is not None else "SELECT declaration FROM environment_version WHERE id = %s"
    row = driver(session).execute(query, (environment_version if task is None else task,)).fetchone()
    return decode(row[0] if row else None)


def decode(body: bytes | None) -> Declaration:
    """A stored declaration; undeclared where there is none."""
    return UNDECLARED if body is None else msgspec.json.decode(body, type=Declaration)


def honest_means(session: Session, project: int, environment_versions: Iterable[int]) -> dict[int, tuple[int, float]]:
    """(count, sum) of the rewards of accepted trajectories, by environment version, of this project alone."""
    rows = (
        driver(session)
        .execute(
            "SELECT environment_version, honest, honest_sum FROM project_environment WHERE project = %s AND environment_version = ANY(%s)",
            (project, sorted(set(environment_versions))),
        )
        .fetchall()
    )
    return {version: (count, total) for version, count, total in rows}


def learn_honest(session: Session, project: int, seen: dict[int, tuple[int, float]]) -> None:
    """Add (count, sum) of accepted rewards to what is known of each environment version."""
    if not seen:
        return
    versions = sorted(seen)
    driver(session).execute(
        "WITH seen AS (SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::float8[]) AS s(v, n, total)),"
        " held AS (SELECT environment_version FROM project_environment WHERE project = %s AND environment_version = ANY(%s) ORDER BY 1 FOR UPDATE)"
        " UPDATE project_environment p SET honest = honest + n, honest_sum = honest_sum + total FROM seen, held"
        " WHERE p.project = %s AND p.environment_version = v AND held.environment_version = v",
        (versions, [seen[v][0] for v in versions], [seen[v][1] for v in versions], project, versions, project),
    )


def count_exploits(session: Session, tasks: dict[int, int]) -> None:
    """Add confirmed exploits to tasks."""
    if tasks:
        ids = sorted(tasks)
        driver(session).execute(
            "UPDATE task SET exploits = exploits + n FROM unnest(%s::bigint[], %s::bigint[]) AS seen(t, n) WHERE id = t", (ids, [tasks[t] for t in ids])
        )


def page(session: Session, project: int, after: int, limit: int) -> Sequence[EnvironmentSummary]:
    """The environment versions that this project sees, in the order of their ids, from `after` on."""
    rows = (
        driver(session)
        .execute(
            "SELECT v.id, v.environment, v.version, v.state, v.sampling_weight, v.declaration IS NOT NULL, p.owner,"
            " coalesce(k.probed, 0), k.counts, k.probed_at FROM project_environment p JOIN environment_version v ON v.id = p.environment_version"
            " LEFT JOIN package k ON k.environment_version = v.id WHERE (p.project, p.environment_version) > (%s, %s) AND p.project <= %s"
            " ORDER BY p.project, p.environment_version LIMIT %s",  # a range: see trajectories._between
            (project, after, project, limit),
        )
        .fetchall()
    )
    return [EnvironmentSummary(i, e, v, State(s), w, d, o, scores_of(*scores)) for i, e, v, s, w, d, o, *scores in rows]
