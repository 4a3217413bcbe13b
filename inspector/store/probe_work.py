"""The work of probes: the listing of a probe's tasks and then each task, leased to workers and closed with what they report.

Whoever needs several rows takes a work first, then its probe; and nobody waits for a second work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple
from uuid import UUID

from sqlmodel import Session

from inspector.errors import Conflict, Unknown
from inspector.store import environments, packages
from inspector.store.probes import OVER, ProbeState, gravity
from inspector.store.session import driver

MOST_CLAIMS = 3  # of one work; a task that ended so many workers is given up


class Work(NamedTuple):
    """One leased work; it may be closed only while `lease` still stands in it."""

    id: int
    lease: int
    probe: UUID
    task_id: int | None
    task: str | None  # None: the listing
    claims: int  # this one included


def claim(session: Session, lease_s: float) -> Work | None:
    """Lease what is due first, of what waits and of what lost its worker."""
    row = (
        driver(session)
        .execute(
            "WITH picked AS MATERIALIZED (SELECT id FROM probe_work WHERE closed_at IS NULL AND (until IS NULL OR until < statement_timestamp())"
            " ORDER BY due_at, id LIMIT 1 FOR UPDATE SKIP LOCKED)"
            " UPDATE probe_work w SET claims = claims + 1, lease = lease + 1, until = clock_timestamp() + make_interval(secs => %s)"
            " FROM picked WHERE w.id = picked.id RETURNING w.id, w.lease, w.probe, w.task, (SELECT task FROM task WHERE id = w.task), w.claims",
            (lease_s,),
        )
        .fetchone()
    )
    return None if row is None else Work(*row)


def held(session: Session, work: int, lease: int) -> Work:
    """A work that is still ours, until the transaction ends. Raises Unknown and Conflict."""
    row = (
        driver(session)
        .execute(
            "SELECT w.id, w.lease, w.probe, w.task, (SELECT task FROM task WHERE id = w.task), w.claims, w.closed_at IS NULL AND w.until IS NOT NULL"
            " FROM probe_work w WHERE id = %s FOR UPDATE",
            (work,),
        )
        .fetchone()
    )
    if row is None:
        raise Unknown("work", work)
    if row[1] != lease or not row[6]:
        raise Conflict(f"lease {lease} of work {work} has ended", path="query.lease")
    return Work(*row[:6])


def extend(session: Session, work: Work, lease_s: float) -> None:
    """What is ours stays ours for another lease."""
    driver(session).execute("UPDATE probe_work SET until = clock_timestamp() + make_interval(secs => %s) WHERE id = %s", (lease_s, work.id))


def state_of(session: Session, probe: UUID, *, starting: bool = False) -> ProbeState:
    """The state of a work's probe, which nobody changes until the transaction ends; one that waited runs from now on, where it is `starting`."""
    connection = driver(session)
    if starting:
        connection.execute("UPDATE probe SET state = 'running', began_at = clock_timestamp() WHERE id = %s AND state = 'queued'", (probe,))
    row = connection.execute("SELECT state FROM probe WHERE id = %s FOR NO KEY UPDATE", (probe,)).fetchone()
    assert row is not None, "works refer to their probe"
    return ProbeState(row[0])


def list_tasks(session: Session, probe: UUID, tasks: Sequence[int]) -> None:
    """From now on these tasks wait, in this order."""
    connection = driver(session)
    connection.execute(
        "INSERT INTO probe_work (probe, task, due_at) SELECT %s, a.task, w.due_at FROM unnest(%s::bigint[]) WITH ORDINALITY AS a(task, place),"
        " (SELECT due_at FROM probe_work WHERE probe = %s AND task IS NULL) w ORDER BY a.place",
        (probe, list(tasks), probe),
    )
    connection.execute("UPDATE probe SET total = %s WHERE id = %s", (len(tasks), probe))


def close(session: Session, work: Work, outcomes: Sequence[str] | None = None, report: bytes | None = None) -> None:
    """Nobody claims it any more; a task keeps what was said of it."""
    driver(session).execute(
        "UPDATE probe_work SET outcomes = %s, report = %s, until = NULL, closed_at = clock_timestamp() WHERE id = %s",
        (None if outcomes is None else list(outcomes), report, work.id),
    )


def spend(session: Session, probe: UUID, cpu_s: float, wall_s: float, *, closed: int = 1) -> None:
    """Count tasks that were closed, and what they took."""
    driver(session).execute(
        "UPDATE probe SET closed = closed + %s, spent_cpu_s = spent_cpu_s + %s, spent_wall_s = spent_wall_s + %s WHERE id = %s", (closed, cpu_s, wall_s, probe)
    )


def drop_waiting(session: Session, probe: UUID) -> list[Work]:
    """Take what nobody holds out of the queue; the tasks among it, in the order of the list."""
    rows = driver(session).execute(
        "WITH free AS MATERIALIZED (SELECT id FROM probe_work WHERE probe = %s AND closed_at IS NULL AND (until IS NULL OR until < statement_timestamp())"
        " FOR UPDATE SKIP LOCKED) UPDATE probe_work w SET closed_at = clock_timestamp() FROM free WHERE w.id = free.id"
        " RETURNING w.id, w.lease, w.probe, w.task, (SELECT task FROM task WHERE id = w.task), w.claims",
        (probe,),
    )
    return [work for work in sorted(Work(*row) for row in rows.fetchall()) if work.task is not None]


def close_all(session: Session, works: Sequence[Work], outcomes: Sequence[str], reports: Sequence[bytes]) -> None:
    """Close many with one and the same outcome, each with its report."""
    driver(session).execute(
        "UPDATE probe_work w SET outcomes = %s, report = said.report, until = NULL, closed_at = clock_timestamp()"
        " FROM unnest(%s::bigint[], %s::bytea[]) AS said(id, report) WHERE w.id = said.id",
        (list(outcomes), [work.id for work in works], list(reports)),
    )


def open_left(session: Session, probe: UUID) -> bool:
    """Whether anything of a probe waits or is held."""
    row = driver(session).execute("SELECT EXISTS (SELECT FROM probe_work WHERE probe = %s AND closed_at IS NULL)", (probe,)).fetchone()
    return row is not None and bool(row[0])


def end(session: Session, probe: UUID, state: ProbeState, note: str = "") -> None:
    """A probe is over; the first end stands, and a note is added to what was noted before."""
    assert state in OVER
    driver(session).execute(
        "UPDATE probe SET state = CASE WHEN ended_at IS NULL THEN %s ELSE state END, ended_at = coalesce(ended_at, clock_timestamp()) WHERE id = %s",
        (state.value, probe),
    )
    if note:
        add_note(session, probe, note)


def add_note(session: Session, probe: UUID, note: str) -> None:
    """Something to be known of a probe as a whole."""
    driver(session).execute("UPDATE probe SET note = left(concat_ws(E'\\n', nullif(note, ''), %s::text), 10000) WHERE id = %s", (note, probe))


def remember(session: Session, environment_version: int, works: Sequence[int]) -> None:
    """What these works say of their tasks is the latest, but where one says nothing and an earlier one did; the version's counts follow."""
    environments.lock(session, environment_version)  # of two that count at once one waits
    rows = (
        driver(session)
        .execute(
            "SELECT t.id, w.id, w.outcomes, t.outcomes FROM probe_work w JOIN task t ON t.id = w.task LEFT JOIN probe_work o ON o.id = t.probed"
            " WHERE w.id = ANY(%s) AND (o.id IS NULL OR o.id = w.id OR (w.closed_at >= o.closed_at AND w.outcomes <> '{not_assessed}'))",
            (list(works),),
        )
        .fetchall()
    )
    if rows:
        tasks, said, outcomes, before = zip(*rows, strict=True)
        driver(session).execute(
            "UPDATE task t SET probed = w.id, outcomes = w.outcomes, gravity = a.gravity"
            " FROM unnest(%s::bigint[], %s::bigint[], %s::int[]) AS a(task, work, gravity)"
            " JOIN probe_work w ON w.id = a.work WHERE t.id = a.task",
            (list(tasks), list(said), [gravity(each) for each in outcomes]),
        )
        packages.count(session, environment_version, Counter(chain(*outcomes)), Counter(chain(*filter(None, before))), before.count(None))


def assessed(session: Session, probe: UUID) -> int:
    """How many tasks of a probe something was said of, be it that they could not be reproduced."""
    row = (
        driver(session).execute("SELECT count(*) FROM probe_work WHERE probe = %s AND outcomes <> '{not_assessed}'", (probe,)).fetchone()  # NULL: not yet
    )
    return int(row[0]) if row else 0


def with_outcome(session: Session, probe: UUID, outcome: str) -> list[tuple[int, str, int, bytes]]:
    """(work, task, the task's id, report) of the tasks of a probe that have this outcome, in the order of its list."""
    rows = driver(session).execute(
        "SELECT w.id, t.task, t.id, w.report FROM probe_work w JOIN task t ON t.id = w.task WHERE w.probe = %s AND %s = ANY(w.outcomes) ORDER BY w.probe, w.id",
        (probe, outcome),
    )
    return [(work, task, task_id, bytes(report)) for work, task, task_id, report in rows.fetchall()]


def rewrite(session: Session, work: int, outcomes: Sequence[str], report: bytes) -> None:
    """What is said of a task after all of its probe was seen."""
    driver(session).execute("UPDATE probe_work SET outcomes = %s, report = %s WHERE id = %s", (list(outcomes), report, work))


def may_be_claimed(session: Session) -> bool:
    """Whether a worker that came now would find something."""
    query = "SELECT FROM probe_work WHERE closed_at IS NULL AND (until IS NULL OR until < statement_timestamp()) ORDER BY due_at, id LIMIT 1"
    return driver(session).execute(query).fetchone() is not None
