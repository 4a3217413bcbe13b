"""Final states that are graded again: which were sampled, who grades them, and what was paid."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlmodel import Session

from inspector.errors import Conflict, Unknown
from inspector.store.session import driver
from inspector.verdict import Verdict

MOST_CLAIMS = 3  # without a report; a state that ended so many workers is given up


class Replay(NamedTuple):
    """One leased replay; it may be reported only while `lease` still stands in it."""

    id: int
    lease: int
    key: UUID
    project: int
    environment_version: int
    grader: int | None  # the version whose repaired verifier grades; None: its own
    task: int
    state: str  # sha256 of the artifact, in hexadecimal
    posted: float
    wanted: int
    rewards: Sequence[float]
    claims: int  # this one included
    sampled_at: datetime


class Replayed(NamedTuple):
    """What came of a replay that is closed."""

    posted: float
    wanted: int
    rewards: Sequence[float]
    note: str


_FIELDS = "r.id, r.lease, r.key, r.project, r.environment_version, r.grader, r.task, encode(r.state, 'hex'), r.posted, r.wanted, r.rewards, r.claims, r.due_at"


def sample(session: Session, states: Sequence[tuple[UUID, str]]) -> None:
    """Have these (trajectory, sha256 of its state) graded again, each once; not where the version has no package or the state was not uploaded."""
    driver(session).execute(
        "INSERT INTO replay (key, project, environment_version, task, state, posted)"
        " SELECT t.key, t.project, t.environment_version, t.task, a.state, t.reward FROM unnest(%s::uuid[], %s::bytea[]) AS a(key, state)"
        " JOIN trajectory t ON t.key = a.key JOIN package p ON p.environment_version = t.environment_version"
        " JOIN artifact f ON f.project = t.project AND f.sha256 = a.state WHERE t.reward IS NOT NULL ON CONFLICT DO NOTHING",
        ([key for key, _ in states], [bytes.fromhex(state) for _, state in states]),
    )


def again(session: Session, environment_version: int, task: int | None, limit: int) -> int:
    """Have states graded once more whose accepted reward every replay so far confirmed; how many. Of a version, or of one task."""
    graded = driver(session).execute(
        "WITH golden AS (SELECT r.id FROM replay r JOIN verdict v ON v.key = r.key WHERE r.environment_version = %(version)s"
        f" AND (%(task)s::bigint IS NULL OR r.task = %(task)s) AND r.closed_at IS NOT NULL AND v.verdict = {Verdict.ACCEPT:d}"
        " AND cardinality(r.rewards) > 0 AND r.posted = ALL(r.rewards) ORDER BY r.id DESC LIMIT %(limit)s FOR UPDATE OF r)"
        " UPDATE replay r SET wanted = cardinality(r.rewards) + 1, claims = 0, until = NULL, closed_at = NULL, due_at = clock_timestamp()"
        " FROM golden WHERE r.id = golden.id",
        {"version": environment_version, "task": task, "limit": limit},
    )
    return graded.rowcount


def claim(session: Session, lease_s: float) -> Replay | None:
    """Lease what waits longest, or lost its worker."""
    row = (
        driver(session)
        .execute(
            "WITH picked AS MATERIALIZED (SELECT id FROM replay WHERE closed_at IS NULL AND (until IS NULL OR until < statement_timestamp())"
            " ORDER BY due_at, id LIMIT 1 FOR UPDATE SKIP LOCKED)"
            " UPDATE replay r SET claims = claims + 1, lease = lease + 1, until = clock_timestamp() + make_interval(secs => %s)"
            f" FROM picked WHERE r.id = picked.id RETURNING {_FIELDS}",
            (lease_s,),
        )
        .fetchone()
    )
    return None if row is None else Replay(*row)


def held(session: Session, id_: int, lease: int) -> Replay:
    """A replay that is still ours, until the transaction ends. Raises Unknown and Conflict."""
    query = f"SELECT {_FIELDS}, r.closed_at IS NULL AND r.until IS NOT NULL FROM replay r WHERE id = %s FOR UPDATE"
    row = driver(session).execute(query, (id_,)).fetchone()
    if row is None:
        raise Unknown("replay", id_)
    if row[1] != lease or not row[-1]:
        raise Conflict(f"lease {lease} of replay {id_} has ended", path="query.lease")
    return Replay(*row[:-1])


def extend(session: Session, replay: Replay, lease_s: float) -> None:
    """What is ours stays ours for another lease."""
    driver(session).execute("UPDATE replay SET until = clock_timestamp() + make_interval(secs => %s) WHERE id = %s", (lease_s, replay.id))


def keep(session: Session, replay: Replay, rewards: Sequence[float], wanted: int, note: str, *, closed: bool) -> None:
    """All that was paid so far; it waits again for the rest, unless it is closed."""
    driver(session).execute(
        "UPDATE replay SET rewards = %s, wanted = %s, note = %s, claims = 0, until = NULL, closed_at = CASE WHEN %s THEN clock_timestamp() END WHERE id = %s",
        (list(rewards), wanted, note, closed, replay.id),
    )


def of(session: Session, keys: Sequence[UUID]) -> dict[UUID, Replayed]:
    """What came of those of these trajectories whose replay is closed."""
    rows = driver(session).execute(
        "SELECT key, posted, wanted, rewards, note FROM replay WHERE key = ANY(%s) AND grader IS NULL AND closed_at IS NOT NULL", (list(keys),)
    )
    return {key: Replayed(*rest) for key, *rest in rows.fetchall()}


def graded_by(replay: Replay) -> int:
    """The environment version whose package grades."""
    return replay.environment_version if replay.grader is None else replay.grader


def about(session: Session, replay: Replay) -> tuple[str, str, str]:
    """(environment, version, task) by their names."""
    query = "SELECT v.environment, v.version, t.task FROM task t JOIN environment_version v ON v.id = t.environment_version WHERE t.id = %s"
    row = driver(session).execute(query, (replay.task,)).fetchone()
    assert row is not None, "tasks are never deleted"
    return str(row[0]), str(row[1]), str(row[2])


def project_uuid(session: Session, replay: Replay) -> UUID:
    """Whose artifact the state is."""
    row = driver(session).execute("SELECT uuid FROM project WHERE id = %s", (replay.project,)).fetchone()
    assert row is not None, "projects are never deleted"
    return UUID(str(row[0]))


def may_be_claimed(session: Session) -> bool:
    """Whether a worker that came now would find something."""
    query = "SELECT FROM replay WHERE closed_at IS NULL AND (until IS NULL OR until < statement_timestamp()) ORDER BY due_at, id LIMIT 1"
    return driver(session).execute(query).fetchone() is not None
