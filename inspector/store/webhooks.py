"""Addresses that a project's decisions are posted to: how far each has heard, what is due, and what became of each post."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID, uuid4

from sqlmodel import Session

from inspector.errors import Conflict, Unknown
from inspector.store import decisions
from inspector.store.session import driver

MOST = 20  # of one project
ATTEMPTS_KEPT = 1000  # of one webhook, the newest


class Webhook(NamedTuple):
    """A webhook as it is listed."""

    id: UUID
    url: str
    note: str
    scopes: list[str] | None
    actions: list[str] | None
    epoch: UUID
    seq: int
    generation: int
    former_until: datetime | None
    failures: int
    due_at: datetime
    disabled_at: datetime | None
    why: str
    created_at: datetime


class Claimed(NamedTuple):
    """A webhook that is ours to serve while `lease` stands in it."""

    id: UUID
    project: int
    url: str
    scopes: list[str] | None
    actions: list[str] | None
    epoch: UUID
    seq: int
    generation: int
    overlap: bool  # the secret before signs too
    failures: int
    tests: int
    lease: int


class Attempt(NamedTuple):
    """One post."""

    message: str
    seq: int | None
    status: int | None
    ms: int
    said: str


class Attempted(NamedTuple):
    """One post as it is listed."""

    id: int
    message: str
    seq: int | None
    status: int | None
    ms: int
    said: str
    attempted_at: datetime


_LISTED = ", ".join(Webhook._fields)


def add(session: Session, project: int, url: str, note: str, scopes: Sequence[str] | None, actions: Sequence[str] | None) -> UUID:
    """A new one, which hears what is decided from now on. Raises Conflict where there are too many."""
    count = driver(session).execute("SELECT count(*) FROM webhook WHERE project = %s", (project,)).fetchone()
    if count and count[0] >= MOST:
        raise Conflict(f"there are {MOST} webhooks already, and no more are kept")
    id_, head = uuid4(), decisions.head(session, project)
    driver(session).execute(
        "INSERT INTO webhook (id, project, url, note, scopes, actions, epoch, seq) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
        (id_, project, url, note, list(scopes) if scopes else None, list(actions) if actions else None, head.epoch, head.seq),
    )
    return id_


def listing(session: Session, project: int) -> list[Webhook]:
    """All of a project, in the order of their ids."""
    return [Webhook(*row) for row in driver(session).execute(f"SELECT {_LISTED} FROM webhook WHERE project = %s ORDER BY id", (project,)).fetchall()]


def find(session: Session, project: int, id: UUID) -> Webhook:
    """One of a project. Raises Unknown."""
    row = driver(session).execute(f"SELECT {_LISTED} FROM webhook WHERE id = %s AND project = %s", (id, project)).fetchone()
    if row is None:
        raise Unknown("webhook", id)
    return Webhook(*row)


def delete(session: Session, project: int, id: UUID) -> None:
    """Forget it, with what was posted there. Raises Unknown."""
    if not driver(session).execute("DELETE FROM webhook WHERE id = %s AND project = %s", (id, project)).rowcount:
        raise Unknown("webhook", id)


def rotate(session: Session, project: int, id: UUID, overlap_s: float) -> int:
    """The next generation of its secret; the one before signs too for `overlap_s`. Raises Unknown."""
    row = (
        driver(session)
        .execute(
            "UPDATE webhook SET generation = generation + 1, former_until = clock_timestamp() + make_interval(secs => %s)"
            " WHERE id = %s AND project = %s RETURNING generation",
            (overlap_s, id, project),
        )
        .fetchone()
    )
    if row is None:
        raise Unknown("webhook", id)
    return int(row[0])


def rewind(session: Session, project: int, id: UUID, seq: int) -> None:
    """Deliver again what comes after `seq`, also where it was disabled; whoever serves it at this moment stops. Raises Unknown."""
    epoch = decisions.head(session, project).epoch
    _change(session, project, id, "seq = %s, epoch = %s, lease = lease + 1, until = NULL, failures = 0, due_at = clock_timestamp()", seq, epoch)
    _change(session, project, id, "disabled_at = NULL, why = ''")


def ask_test(session: Session, project: int, id: UUID) -> None:
    """Have a message posted that tells of no decision. Raises Unknown."""
    _change(session, project, id, "tests = least(tests + 1, 10)")


def _change(session: Session, project: int, id: UUID, change: str, *values: object) -> None:
    if not driver(session).execute(f"UPDATE webhook SET {change} WHERE id = %s AND project = %s", (*values, id, project)).rowcount:
        raise Unknown("webhook", id)


def attempts(session: Session, id: UUID, before: int | None, limit: int) -> list[Attempted]:
    """What was posted, newest first."""
    rows = driver(session).execute(
        "SELECT id, message, seq, status, ms, said, attempted_at FROM webhook_attempt WHERE webhook = %s AND id < %s ORDER BY id DESC LIMIT %s",
        (id, before if before is not None else 2**62, limit),
    )
    return [Attempted(*row) for row in rows.fetchall()]


def listeners(session: Session) -> set[int]:
    """The projects of which somebody is to be told what is decided there."""
    return {int(row[0]) for row in driver(session).execute("SELECT DISTINCT project FROM webhook WHERE disabled_at IS NULL").fetchall()}


def claim(session: Session, lease_s: float) -> Claimed | None:
    """Lease the one that waits longest, of those that have something to hear or to be tested with."""
    row = (
        driver(session)
        .execute(
            "WITH picked AS MATERIALIZED (SELECT w.id FROM webhook w JOIN feed f ON f.project = w.project"
            " WHERE (w.tests > 0 OR w.disabled_at IS NULL AND w.due_at <= clock_timestamp() AND (f.last > w.seq OR f.epoch <> w.epoch))"
            " AND (w.until IS NULL OR w.until < clock_timestamp()) ORDER BY w.due_at, w.id LIMIT 1 FOR UPDATE OF w SKIP LOCKED)"
            " UPDATE webhook w SET lease = lease + 1, until = clock_timestamp() + make_interval(secs => %s) FROM picked WHERE w.id = picked.id"
            " RETURNING w.id, w.project, w.url, w.scopes, w.actions, w.epoch, w.seq, w.generation, coalesce(w.former_until > clock_timestamp(), false),"
            " w.failures, w.tests, w.lease",
            (lease_s,),
        )
        .fetchone()
    )
    return None if row is None else Claimed(*row)


def is_due(session: Session, claimed: Claimed) -> bool:
    """Whether decisions may be posted there now: it may have been claimed for a test alone."""
    row = (
        driver(session)
        .execute("SELECT disabled_at IS NULL AND due_at <= clock_timestamp() FROM webhook WHERE id = %s AND lease = %s", (claimed.id, claimed.lease))
        .fetchone()
    )
    return row is not None and bool(row[0])


def note(session: Session, id: UUID, attempt: Attempt) -> None:
    """Remember what became of a post."""
    connection = driver(session)
    connection.execute("INSERT INTO webhook_attempt (webhook, message, seq, status, ms, said) SELECT %s, %s, %s, %s, %s, %s", (id, *attempt))
    connection.execute(
        "DELETE FROM webhook_attempt WHERE webhook = %(id)s AND id <= (SELECT id FROM webhook_attempt WHERE webhook = %(id)s ORDER BY id DESC"
        " OFFSET %(kept)s LIMIT 1)",
        {"id": id, "kept": ATTEMPTS_KEPT},
    )


def move(session: Session, claimed: Claimed, epoch: UUID, seq: int, lease_s: float) -> bool:
    """All up to `seq` was heard or is not wanted; False where it is ours no more."""
    return _held(
        session,
        claimed,
        "epoch = %s, seq = %s, failures = 0, due_at = clock_timestamp(), until = clock_timestamp() + make_interval(secs => %s)",
        epoch,
        seq,
        lease_s,
    )


def tested(session: Session, claimed: Claimed) -> bool:
    """The tests that were asked for were sent."""
    return _held(session, claimed, "tests = greatest(0, tests - %s)", claimed.tests)


def postpone(session: Session, claimed: Claimed, seconds: float) -> bool:
    """It failed once more, and is tried again after so long."""
    return _held(session, claimed, "failures = failures + 1, until = NULL, due_at = clock_timestamp() + make_interval(secs => %s)", seconds)


def disable(session: Session, claimed: Claimed, why: str) -> bool:
    """Nothing is posted there any more, until its owner says so."""
    return _held(session, claimed, "failures = failures + 1, until = NULL, disabled_at = clock_timestamp(), why = %s", why)


def release(session: Session, claimed: Claimed) -> bool:
    """Nobody serves it now."""
    return _held(session, claimed, "until = NULL")


def _held(session: Session, claimed: Claimed, change: str, *values: object) -> bool:
    return bool(driver(session).execute(f"UPDATE webhook SET {change} WHERE id = %s AND lease = %s", (*values, claimed.id, claimed.lease)).rowcount)
