"""Final states that a repaired verifier grades anew: what was asked for, how far it is, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from sqlmodel import Session

from inspector.store.codes import CAUSE_CODE
from inspector.store.session import driver
from inspector.verdict import Cause, Verdict

TWICE = 2  # gradings of a state: a verifier that contradicts itself is not repaired


class Regrade(NamedTuple):
    """What is graded anew."""

    id: int
    environment_version: int  # whose trajectories
    grader: int  # the environment version whose package grades them
    after: UUID  # the last trajectory that was looked at
    left: int  # states that may still be graded


class Suspect(NamedTuple):
    """A trajectory whose verifier was at fault."""

    key: UUID
    project: int


class Regraded(NamedTuple):
    """What the repaired verifier pays, each time it was asked."""

    rewards: Sequence[float]
    environment: str
    version: str


def ask(session: Session, project: int, environment_version: int, grader: int, most: int) -> int:
    """Have them graded anew."""
    row = (
        driver(session)
        .execute(
            'INSERT INTO regrade (project, environment_version, grader, "left") VALUES (%s, %s, %s, %s) RETURNING id',
            (project, environment_version, grader, most),
        )
        .fetchone()
    )
    assert row is not None, "an insert returns its row"
    return int(row[0])


def next_open(session: Session) -> Regrade | None:
    """The oldest that is not done, until the transaction ends."""
    query = 'SELECT id, environment_version, grader, after, "left" FROM regrade WHERE open ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED'
    row = driver(session).execute(query).fetchone()
    return None if row is None else Regrade(*row)


def suspects(session: Session, regrade: Regrade, limit: int) -> list[Suspect]:
    """Its next trajectories that are out because of their verifier, in the order of their keys; whoever posted them."""
    rows = driver(session).execute(
        "SELECT t.key, t.project FROM project_environment p JOIN trajectory t ON t.environment_version = p.environment_version AND t.project = p.project"
        f" JOIN verdict v ON v.key = t.key AND v.verdict = {Verdict.QUARANTINE:d} AND v.cause = %s AND NOT v.by_person"
        " WHERE p.environment_version = %s AND t.key > %s ORDER BY t.key LIMIT %s",
        (CAUSE_CODE[Cause.VERIFIER_DEFECT], regrade.environment_version, regrade.after, limit),
    )
    return [Suspect(*row) for row in rows.fetchall()]


def add(session: Session, regrade: Regrade, states: Sequence[tuple[UUID, str]], delay_s: float) -> int:
    """Have these (trajectory, sha256 of its state) graded by it, after `delay_s` unless nothing else waits; how many are new."""
    added = driver(session).execute(
        "INSERT INTO replay (key, project, environment_version, task, state, posted, wanted, grader, due_at)"
        f" SELECT t.key, t.project, t.environment_version, t.task, a.state, coalesce(t.reward, 0), {TWICE}, %(grader)s,"
        " clock_timestamp() + make_interval(secs => %(delay)s) FROM unnest(%(keys)s::uuid[], %(states)s::bytea[]) AS a(key, state)"
        " JOIN trajectory t ON t.key = a.key JOIN artifact f ON f.project = t.project AND f.sha256 = a.state ON CONFLICT DO NOTHING",
        {"grader": regrade.grader, "delay": delay_s, "keys": [key for key, _ in states], "states": [bytes.fromhex(state) for _, state in states]},
    )
    return added.rowcount


def advance(session: Session, regrade: Regrade, after: UUID, taken: int, *, done: bool) -> None:
    """So far it is."""
    driver(session).execute(
        'UPDATE regrade SET after = %s, "left" = "left" - %s, found = found + %s, open = NOT %s WHERE id = %s', (after, taken, taken, done, regrade.id)
    )


def of(session: Session, keys: Sequence[UUID]) -> dict[UUID, Regraded]:
    """What came of those of these trajectories that a repaired verifier has graded, by the newest."""
    rows = driver(session).execute(
        "SELECT DISTINCT ON (r.key) r.key, r.rewards, e.environment, e.version FROM replay r JOIN environment_version e ON e.id = r.grader"
        " WHERE r.key = ANY(%s) AND r.grader IS NOT NULL AND r.closed_at IS NOT NULL AND r.note = '' AND cardinality(r.rewards) > 0"
        " ORDER BY r.key, r.id DESC",
        (list(keys),),
    )
    return {key: Regraded(*rest) for key, *rest in rows.fetchall()}
