"""Probes of environment versions: who asked for what, how far they are, and what they came to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import NamedTuple
from uuid import UUID

from sqlmodel import Session

from inspector.errors import Unknown
from inspector.keys import new_keys
from inspector.store.session import driver


class Priority(IntEnum):
    """How urgent a probe is. The numbers are stored."""

    LIVE = 0
    PROBE = 1
    BACKFILL = 2


GRACE_S = {Priority.LIVE: 0, Priority.PROBE: 600, Priority.BACKFILL: 3600}  # that what is more urgent and comes later still goes first


class ProbeState(StrEnum):
    """Where a probe is."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"  # its tasks could not be listed


WORST_FIRST = (
    "exploitable",
    "trivially_passable",
    "unsolvable",
    "flaky",
    "weak_verifier",
    "false_rejecting",
    "not_reproduced",
    "inconclusive",
    "not_assessed",
    "sound",
)
ROOM = 100  # more than a task has outcomes
SCAN = 500  # tasks that one page of a scorecard looks at for those of one outcome
OVER = (ProbeState.DONE, ProbeState.CANCELLED, ProbeState.FAILED)


class Budget(NamedTuple):
    """Seconds that all tasks of a probe may take together; None: no bound."""

    cpu_s: float | None = None
    wall_s: float | None = None


class Asked(NamedTuple):
    """A probe as it was asked for."""

    depth: str
    tasks: Sequence[str] | None  # None: all
    priority: Priority
    budget: Budget


class Probe(NamedTuple):
    """A probe as it stands."""

    id: UUID
    project: int
    environment_version: int
    environment: str
    version: str
    asked: Asked
    spent: Budget
    state: ProbeState
    total: int | None  # None until its tasks were listed
    closed: int
    note: str
    asked_at: datetime
    began_at: datetime | None
    ended_at: datetime | None


class TaskOfProbe(NamedTuple):
    """A task of a probe."""

    id: int  # where it stands in the list
    task: str
    running: bool
    outcomes: Sequence[str] | None  # None until it was probed
    report: bytes | None  # JSON


class Place(NamedTuple):
    """Where a task stands in the scorecard of its version."""

    gravity: int
    id: int


class Latest(NamedTuple):
    """What the last probe that could say something said of a task."""

    place: Place  # with the task's id
    task: str
    outcomes: Sequence[str]
    probe: UUID
    probed_at: datetime


class Gravest(NamedTuple):
    """One page of a scorecard."""

    tasks: list[Latest]
    last: Place | None  # how far was looked; None where nothing is behind it


class Said(NamedTuple):
    """What the last probe that could tell said of a task."""

    outcomes: Sequence[str]
    probe: UUID


_NEWEST = UUID(int=2**128 - 1)  # and newer
_PROBE = (
    "SELECT p.id, p.project, p.environment_version, v.environment, v.version, p.depth, p.tasks, p.priority, p.cpu_s, p.wall_s, p.spent_cpu_s, p.spent_wall_s,"
    " p.state, p.total, p.closed, p.note, p.asked_at, p.began_at, p.ended_at FROM probe p JOIN environment_version v ON v.id = p.environment_version"
)


def add(session: Session, project: int, environment_version: int, asked: Asked) -> UUID:
    """Ask for a probe; its first work is to list its tasks."""
    [key] = new_keys(1)
    connection = driver(session)
    connection.execute(
        "INSERT INTO probe (id, project, environment_version, depth, tasks, priority, cpu_s, wall_s) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
        (key, project, environment_version, asked.depth, None if asked.tasks is None else list(asked.tasks), int(asked.priority), *asked.budget),
    )
    connection.execute("INSERT INTO probe_work (probe, due_at) VALUES (%s, clock_timestamp() + make_interval(secs => %s))", (key, GRACE_S[asked.priority]))
    return key


def find(session: Session, project: int | None, probe: UUID, *, lock: bool = False) -> Probe:
    """A probe that this project asked for; any, for `project` None. Raises Unknown."""
    query = _PROBE + " WHERE p.id = %s AND (%s::bigint IS NULL OR p.project = %s)" + (" FOR NO KEY UPDATE OF p" if lock else "")
    row = driver(session).execute(query, (probe, project, project)).fetchone()
    if row is None:
        raise Unknown("probe", probe)
    return _probe(row)


def of_version(session: Session, project: int, environment_version: int, after: UUID | None, limit: int) -> list[Probe]:
    """The probes of one version that this project asked for, newest first, behind `after`."""
    rows = (
        "SELECT * FROM probe WHERE (environment_version, project) >= (%s, %s) AND (environment_version, project, id) < (%s, %s, %s)"
        " ORDER BY environment_version DESC, project DESC, id DESC LIMIT %s"  # see trajectories._between
    )
    query = _PROBE.replace("FROM probe p", f"FROM ({rows}) p") + " ORDER BY p.id DESC"
    place = (environment_version, project)
    return [_probe(row) for row in driver(session).execute(query, (*place, *place, after or _NEWEST, limit)).fetchall()]


def page(session: Session, project: int, after: UUID | None, limit: int) -> list[Probe]:
    """The probes that this project asked for, newest first, behind `after`."""
    rows = "SELECT * FROM probe WHERE project >= %s AND (project, id) < (%s, %s) ORDER BY project DESC, id DESC LIMIT %s"  # see trajectories._between
    query = _PROBE.replace("FROM probe p", f"FROM ({rows}) p") + " ORDER BY p.id DESC"
    return [_probe(row) for row in driver(session).execute(query, (project, project, after or _NEWEST, limit)).fetchall()]


def _probe(row: Sequence[object]) -> Probe:
    id_, project, environment_version, environment, version, depth, tasks, priority, *rest = row
    cpu_s, wall_s, spent_cpu_s, spent_wall_s, state, *others = rest
    asked = Asked(depth, tasks, Priority(priority), Budget(cpu_s, wall_s))  # type: ignore[arg-type]
    spent = Budget(spent_cpu_s, spent_wall_s)  # type: ignore[arg-type]
    return Probe(id_, project, environment_version, environment, version, asked, spent, ProbeState(state), *others)  # type: ignore[arg-type]


def counts(session: Session, probe: UUID) -> dict[str, int]:
    """How many of its tasks have each outcome so far; a task may have several."""
    rows = driver(session).execute("SELECT outcome, count(*) FROM probe_work, unnest(outcomes) AS outcome WHERE probe = %s GROUP BY 1 ORDER BY 1", (probe,))
    return dict(rows.fetchall())


def tasks(session: Session, probe: UUID, after: int, limit: int) -> list[TaskOfProbe]:
    """Its tasks in the order of its list, those that wait too."""
    rows = driver(session).execute(
        "SELECT w.id, t.task, w.closed_at IS NULL AND w.until > clock_timestamp(), w.outcomes, w.report FROM probe_work w JOIN task t ON t.id = w.task"
        " WHERE (w.probe, w.id) > (%s, %s) AND w.probe <= %s ORDER BY w.probe, w.id LIMIT %s",  # see trajectories._between
        (probe, after, probe, limit),
    )
    return [TaskOfProbe(*row) for row in rows.fetchall()]


def waiting(session: Session) -> dict[ProbeState, int]:
    """How many probes wait, and how many run."""
    rows = driver(session).execute("SELECT state, count(*) FROM probe WHERE ended_at IS NULL GROUP BY state").fetchall()
    return {state: dict(rows).get(state.value, 0) for state in (ProbeState.QUEUED, ProbeState.RUNNING)}


def under_way(session: Session, environment_version: int) -> bool:
    """Whether a probe of a version waits or runs."""
    row = driver(session).execute("SELECT EXISTS (SELECT FROM probe WHERE environment_version = %s AND ended_at IS NULL)", (environment_version,)).fetchone()
    return row is not None and bool(row[0])


def task_of(session: Session, probe: Probe, task: str) -> TaskOfProbe:
    """One of its tasks. Raises Unknown."""
    row = (
        driver(session)
        .execute(
            "SELECT w.id, t.task, w.closed_at IS NULL AND w.until > clock_timestamp(), w.outcomes, w.report FROM task t JOIN probe_work w ON w.task = t.id"
            " WHERE t.environment_version = %s AND t.task = %s AND w.probe = %s",
            (probe.environment_version, task, probe.id),
        )
        .fetchone()
    )
    if row is None:
        raise Unknown("task", task)
    return TaskOfProbe(*row)


def gravity(outcomes: Sequence[str]) -> int:
    """What tasks are sorted by: the gravest outcome, and of equal ones more outcomes; the lower the worse."""
    return min(map(WORST_FIRST.index, outcomes), default=len(WORST_FIRST)) * ROOM - len(outcomes)


def gravest(session: Session, environment_version: int, after: Place | None, limit: int, outcome: str | None = None) -> Gravest:
    """What was last said of the tasks of a version that were probed, worst first, behind `after`; of those of one outcome where it is given."""
    scan = limit if outcome is None else SCAN
    rows = (
        driver(session)
        .execute(
            "WITH looked AS MATERIALIZED (SELECT gravity, id, task, outcomes, probed FROM task WHERE environment_version >= %s AND environment_version <= %s"
            " AND (environment_version, gravity, id) > (%s, %s, %s) AND probed IS NOT NULL ORDER BY environment_version, gravity, id LIMIT %s)"
            " SELECT l.gravity, l.id, l.task, l.outcomes, w.probe, w.closed_at FROM looked l JOIN probe_work w ON w.id = l.probed ORDER BY l.gravity, l.id",
            (environment_version, environment_version, environment_version, *(after or Place(-ROOM, 0)), scan),
        )
        .fetchall()
    )
    found = [Latest(Place(gravity, id_), *others) for gravity, id_, *others in rows]
    shown = [one for one in found if outcome is None or outcome in one.outcomes]
    if len(shown) >= limit:
        return Gravest(shown[:limit], shown[limit - 1].place)
    return Gravest(shown, found[-1].place if len(found) == scan and _goes_on(found[-1], outcome) else None)


def _goes_on(last: Latest, outcome: str | None) -> bool:
    """Whether a task behind this one may have the outcome: its own is the gravest that it may have there, or one that is graver than it."""
    return outcome is None or last.place.gravity <= WORST_FIRST.index(outcome) * ROOM


def said(session: Session, tasks: Iterable[int]) -> dict[int, Said]:
    """Of those of these tasks that were probed: what was said last."""
    rows = driver(session).execute(
        "SELECT t.id, w.outcomes, w.probe FROM task t JOIN probe_work w ON w.id = t.probed WHERE t.id = ANY(%s)", (sorted(set(tasks)),)
    )
    return {task: Said(outcomes, probe) for task, outcomes, probe in rows.fetchall()}


def kept(session: Session, tasks: Sequence[int], limit: int) -> dict[int, list[UUID]]:
    """By project: the newest trajectories of these tasks that are kept by the checks' word, at most `limit` of each task."""
    rows = driver(session).execute(
        "SELECT k.project, k.key FROM unnest(%s::bigint[]) AS a(task) CROSS JOIN LATERAL (SELECT t.project, t.key FROM trajectory t"
        " JOIN verdict v ON v.key = t.key WHERE t.task = a.task AND v.action = 0 AND NOT v.by_person ORDER BY t.key DESC LIMIT %s) k",
        (list(tasks), limit),
    )
    found: dict[int, list[UUID]] = {}
    for project, key in rows.fetchall():
        found.setdefault(project, []).append(key)
    return found
