"""The work list: what waits for its audit, who holds it, and for how long."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

from sqlmodel import Session

from inspector.store.session import driver

BLOCK = 500  # subjects a claim; beyond it nothing is gained
BLOCK_BYTES = 16 << 20  # of raw lines: a few long ones make a block of their own
LATE_BLOCK = 16  # groups a claim of late checks
MOST_CLAIMS = 1000  # that are counted: what fails for weeks must not outgrow its column, where no claim would succeed any more
SUSPECT_BLOCK = 16  # what a second claim takes: one of them ended the worker that had claimed it first


class Lane(IntEnum):
    """Which queue a row belongs to. The numbers are stored."""

    FAST = 0
    LATE = 1


class Claim(NamedTuple):
    """One leased row; it may be closed only while `lease` still stands in it."""

    id: int
    lease: int
    project: int
    key: UUID | None
    group: int | None
    claims: int  # this one included


def claim(session: Session, lease_s: float, *, block: int = BLOCK, block_bytes: int = BLOCK_BYTES, lane: Lane = Lane.FAST) -> list[Claim]:
    """Lease a block: first one that ended two workers already, then what ended one, then what is new, oldest first."""
    mine = f"lane = {lane:d}"
    for where, count in (("claims >= 2", 1), ("claims = 1", SUSPECT_BLOCK)):
        suspects = _lease(session, f"{mine} AND {where} AND until < statement_timestamp()", "until", count, block_bytes, lease_s)
        if suspects:
            return suspects
    return _lease(session, f"{mine} AND claims = 0", "priority, id", block, block_bytes, lease_s)


def claim_overdue(session: Session, deadline_s: float, lease_s: float, *, block: int = BLOCK) -> list[Claim]:
    """Take late rows that were asked for longer ago than `deadline_s`, also out of the hands of who holds them."""
    where = f"lane = {Lane.LATE:d} AND added_at < statement_timestamp() - make_interval(secs => {float(deadline_s)})"
    return _lease(session, where, "added_at", block, 1 << 62, lease_s)


def _lease(session: Session, where: str, order: str, count: int, block_bytes: int, lease_s: float) -> list[Claim]:
    rows = (
        driver(session)
        .execute(
            f"WITH picked AS MATERIALIZED (SELECT id, length FROM work WHERE {where} ORDER BY {order} LIMIT %s FOR UPDATE SKIP LOCKED),"
            " fitting AS (SELECT id, sum(length) OVER (ORDER BY id) - length AS before FROM picked)"
            f" UPDATE work w SET claims = least(claims + 1, {MOST_CLAIMS}), lease = lease + 1, until = clock_timestamp() + make_interval(secs => %s)"
            " FROM fitting f WHERE w.id = f.id AND f.before < %s RETURNING w.id, w.lease, w.project, w.key, w.group_id, w.claims",
            (count, lease_s, block_bytes),
        )
        .fetchall()
    )
    return sorted(Claim(*row) for row in rows)


def extend(session: Session, claims: Sequence[Claim], lease_s: float) -> None:
    """The heartbeat: what is still ours stays ours for another lease.

    Rows that are locked are being closed or claimed at this moment: waiting for them would deadlock with the closer.
    """
    ids, leases = [c.id for c in claims], [c.lease for c in claims]
    driver(session).execute(
        "WITH free AS MATERIALIZED (SELECT id FROM work WHERE id = ANY(%s) FOR UPDATE SKIP LOCKED)"
        " UPDATE work w SET until = clock_timestamp() + make_interval(secs => %s) FROM free JOIN unnest(%s::bigint[], %s::bigint[]) AS held(id, lease)"
        " USING (id) WHERE w.id = free.id AND w.lease = held.lease",
        (ids, lease_s, ids, leases),
    )


def close(session: Session, claims: Sequence[Claim]) -> set[int]:
    """Take away the rows that are still ours; the others were claimed by someone else meanwhile and must not be written."""
    ids, leases = [c.id for c in claims], [c.lease for c in claims]
    connection = driver(session)
    connection.execute("SELECT FROM work WHERE id = ANY(%s) ORDER BY id FOR UPDATE", (ids,))  # in order: two late closers must not deadlock
    rows = connection.execute(
        "DELETE FROM work w USING unnest(%s::bigint[], %s::bigint[]) AS held(id, lease) WHERE w.id = held.id AND w.lease = held.lease RETURNING w.id",
        (ids, leases),
    ).fetchall()
    return {int(row[0]) for row in rows}


def add_groups(session: Session, groups: Iterable[tuple[int, int]]) -> None:
    """Ask for the audit of (project, group)s."""
    pairs = list(groups)
    if pairs:
        driver(session).execute(
            "INSERT INTO work (project, group_id) SELECT * FROM unnest(%s::bigint[], %s::bigint[])", ([p for p, _ in pairs], [g for _, g in pairs])
        )


def add_late(session: Session, groups: Iterable[tuple[int, int]]) -> None:
    """Ask for the late checks of (project, group)s; once, however often before it begins."""
    pairs = sorted(set(groups))
    if pairs:
        driver(session).execute(
            f"INSERT INTO work (project, group_id, lane, length) SELECT p, g, {Lane.LATE:d},"
            " least(coalesce((SELECT sum(t.length) FROM trajectory t WHERE t.group_id = g), 0), 2147483647)"
            " FROM unnest(%s::bigint[], %s::bigint[]) AS asked(p, g)"
            f" WHERE NOT EXISTS (SELECT FROM work w WHERE w.group_id = g AND w.lane = {Lane.LATE:d} AND w.claims = 0)",
            ([p for p, _ in pairs], [g for _, g in pairs]),
        )


def add_groups_of(session: Session, keys: Iterable[UUID]) -> None:
    """Ask for another audit of the groups of these trajectories, where they were decided before."""
    driver(session).execute(
        "INSERT INTO work (project, group_id) SELECT DISTINCT g.project, g.id FROM trajectory t JOIN rollout_group g ON g.id = t.group_id"
        " WHERE t.key = ANY(%s) AND g.closed",
        (list(keys),),
    )


def add_trajectories(session: Session, project: int, keys: Sequence[UUID], *, priority: int = 0) -> None:
    """Ask for another audit of trajectories that were audited before."""
    driver(session).execute("INSERT INTO work (project, key, priority) SELECT %s, unnest(%s::uuid[]), %s", (project, list(keys), priority))


class Waiting(NamedTuple):
    """How much work there is."""

    waiting: int  # counted up to a bound: the exact number of a long queue helps nobody
    leased: int
    overdue: int  # leased, and the lease ran out
    oldest_s: float  # age of the oldest that nobody has claimed yet


def waiting(session: Session, bound: int = 100_000, lane: Lane = Lane.FAST) -> Waiting:
    """What waits now in a lane."""
    row = (
        driver(session)
        .execute(
            "SELECT (SELECT count(*) FROM (SELECT FROM work WHERE lane = %(lane)s AND claims = 0 LIMIT %(bound)s) w), count(*) FILTER (WHERE claims > 0),"
            " count(*) FILTER (WHERE claims > 0 AND until < clock_timestamp()), coalesce(extract(epoch FROM clock_timestamp()"
            " - (SELECT added_at FROM work WHERE lane = %(lane)s AND claims = 0 ORDER BY priority, id LIMIT 1)), 0)"
            " FROM work WHERE claims > 0 AND lane = %(lane)s",
            {"lane": int(lane), "bound": bound},
        )
        .fetchone()
    )
    assert row is not None
    return Waiting(row[0], row[1], row[2], float(row[3]))
