"""Groups: the rollouts of one task under one policy version, and when all of them have come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from sqlmodel import Session

from inspector.errors import Unknown
from inspector.store.codes import cause_of
from inspector.store.session import driver
from inspector.verdict import Cause


class GroupName(NamedTuple):
    """A group as it is told apart: its name within a run."""

    run: int | None
    name: str
    size: int | None


class Member(NamedTuple):
    """What a group's decision is made from, for one of its trajectories."""

    key: UUID
    id: str
    reward: float | None
    verdict: int
    action: int
    reward_override: float | None
    seq: int | None
    task: int
    run: int | None
    environment: str
    version: str
    task_name: str
    selection: int
    pending: bool  # a check of it has not spoken yet
    cause: Cause | None = None  # of what stands
    retry: bool = False


def touch(session: Session, project: int, groups: Iterable[GroupName]) -> dict[tuple[int | None, str], int]:
    """Ids of groups, made where they were not known; each is marked as having just got a member."""
    wanted = sorted({(g.run, g.name): g.size for g in groups}.items(), key=lambda item: (item[0][0] or 0, item[0][1]))
    if not wanted:
        return {}
    rows = (
        driver(session)
        .execute(
            "INSERT INTO rollout_group (project, run, name, size) SELECT %s, * FROM unnest(%s::bigint[], %s::text[], %s::int[])"
            " ON CONFLICT (project, run, name) DO UPDATE SET touched_at = clock_timestamp(), size = coalesce(excluded.size, rollout_group.size)"
            " RETURNING run, name, id",
            (project, [run for (run, _), _ in wanted], [name for (_, name), _ in wanted], [size for _, size in wanted]),
        )
        .fetchall()
    )
    return {(run, name): id_ for run, name, id_ in rows}


def count_audited(session: Session, audited: Mapping[int, int]) -> list[int]:
    """Count members whose fast lane is done; the groups that are complete by it, or were before and got a late member or (0) another audit of one."""
    if not audited:
        return []
    ids = sorted(audited)
    connection = driver(session)
    # In the order in which `touch` takes them, whatever the database's collation: the two must not deadlock.
    connection.execute('SELECT FROM rollout_group WHERE id = ANY(%s) ORDER BY coalesce(run, 0), name COLLATE "C" FOR UPDATE', (ids,))
    rows = connection.execute(
        "UPDATE rollout_group g SET audited = audited + n, touched_at = clock_timestamp(), closed = closed OR (size IS NOT NULL AND audited + n >= size)"
        " FROM unnest(%s::bigint[], %s::int[]) AS seen(id, n) WHERE g.id = seen.id RETURNING g.id, g.closed",
        (ids, [audited[id_] for id_ in ids]),
    ).fetchall()
    return [id_ for id_, closed in rows if closed]


def close_quiet(session: Session, quiet_s: float, limit: int = 500) -> list[tuple[int, int]]:
    """Groups that got nothing for so long are taken as complete: (project, group), once each."""
    rows = (
        driver(session)
        .execute(
            "UPDATE rollout_group SET closed = true WHERE id IN (SELECT id FROM rollout_group WHERE NOT closed AND audited > 0"
            " AND touched_at < statement_timestamp() - make_interval(secs => %s) ORDER BY touched_at LIMIT %s FOR UPDATE SKIP LOCKED) RETURNING project, id",
            (quiet_s, limit),
        )
        .fetchall()
    )
    return [(project, id_) for project, id_ in rows]


def members(session: Session, groups: Iterable[int]) -> dict[int, list[Member]]:
    """The audited trajectories of each group."""
    rows = (
        driver(session)
        .execute(
            "SELECT t.group_id, t.key, t.id, t.reward, v.verdict, v.action, v.reward_override, v.seq,"
            " t.task, t.run, e.environment, e.version, k.task, t.selection, position(decode('00', 'hex') IN v.outcomes) > 0, v.cause, v.retry"
            " FROM trajectory t JOIN verdict v USING (key) JOIN task k ON k.id = t.task JOIN environment_version e ON e.id = t.environment_version"
            " WHERE t.group_id = ANY(%s) ORDER BY t.group_id, t.key",
            (sorted(set(groups)),),
        )
        .fetchall()
    )
    found: dict[int, list[Member]] = {}
    for group, *row, cause, retry in rows:
        found.setdefault(group, []).append(Member._make((*row, cause_of(cause), retry)))
    return found


def of(session: Session, group: int) -> list[Member]:
    """The audited trajectories of one group."""
    return members(session, [group]).get(group, [])


class Extent(NamedTuple):
    """How much of a group there is."""

    name: str
    complete: bool  # False where it was closed because nothing came any more
    length: int  # bytes of its lines


def extent(session: Session, group: int) -> Extent:
    """Of one group; raises Unknown."""
    row = (
        driver(session)
        .execute(
            "SELECT name, size IS NOT NULL AND audited >= size, (SELECT coalesce(sum(t.length), 0) FROM trajectory t WHERE t.group_id = g.id)"
            " FROM rollout_group g WHERE id = %s",
            (group,),
        )
        .fetchone()
    )
    if row is None:
        raise Unknown("group", group)
    return Extent(row[0], row[1], int(row[2]))


def names(session: Session, groups: Iterable[int]) -> dict[int, str]:
    """The producer's name of each group."""
    rows = driver(session).execute("SELECT id, name FROM rollout_group WHERE id = ANY(%s)", (sorted(set(groups)),)).fetchall()
    return dict(rows)


def mark_mixed(session: Session, groups: Iterable[int]) -> list[int]:
    """Groups now known to hold several tasks; only those that were not known before, so that each is acted on once."""
    rows = driver(session).execute("UPDATE rollout_group SET mixed = true WHERE id = ANY(%s) AND NOT mixed RETURNING id", (sorted(set(groups)),)).fetchall()
    return [int(row[0]) for row in rows]


def tasks_of(session: Session, groups: Iterable[int]) -> dict[int, list[str]]:
    """Every task that was posted under each group."""
    rows = (
        driver(session)
        .execute(
            "SELECT t.group_id, array_agg(DISTINCT k.task ORDER BY k.task) FROM trajectory t JOIN task k ON k.id = t.task"
            " WHERE t.group_id = ANY(%s) GROUP BY 1",
            (sorted(set(groups)),),
        )
        .fetchall()
    )
    return dict(rows)
