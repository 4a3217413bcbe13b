"""What people judged as labels, with what had been found and how probable it was that a person looked; and what chance picked for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

import msgspec
from sqlmodel import Session

from inspector.store.codes import cause_of
from inspector.store.session import driver
from inspector.verdict import Cause, Finding, Verdict

COUNTED = 1_000_000  # of one verdict; no more are counted


class Pick(NamedTuple):
    """A trajectory that chance picked."""

    key: UUID
    project: int
    place: float  # in [0, 1)
    share: float  # below which places are picked


class Judged(NamedTuple):
    """A trajectory that a person judged last by the review of this number."""

    key: UUID
    number: int
    bad: bool
    cause: Cause | None  # as the person named it
    before: Verdict | None  # of the checks
    group: int | None
    environment: str
    share: float | None  # with what probability chance picked it; None where it did not
    canary: bool
    findings: tuple[Finding, ...]  # but for those of checks that the project revoked


def pick(session: Session, picked: Sequence[Pick]) -> None:
    """Have people look at these; one that was picked before stays as it is."""
    keys, projects, places, shares = (list(column) for column in zip(*picked, strict=True))
    driver(session).execute(
        "INSERT INTO spot_check (key, project, place, share) SELECT * FROM unnest(%s::uuid[], %s::bigint[], %s::float8[], %s::float8[]) ON CONFLICT DO NOTHING",
        (keys, projects, places, shares),
    )


def open_picks(session: Session, project: int, limit: int) -> list[UUID]:
    """What chance picked and nobody looked at; by place, so that those that were looked at are a random part, whenever one stops."""
    query = (
        "SELECT s.key FROM spot_check s WHERE s.project = %s AND s.open AND EXISTS (SELECT FROM verdict v WHERE v.key = s.key) ORDER BY s.place, s.key LIMIT %s"
    )
    return [row[0] for row in driver(session).execute(query, (project, limit)).fetchall()]


def close(session: Session, key: UUID) -> None:
    """A person looked at it."""
    driver(session).execute("UPDATE spot_check SET open = false WHERE key = %s AND open", (key,))


def judged(session: Session, project: int, most: int) -> list[Judged]:
    """The trajectories that people judged last, oldest first; of those that were forgotten nothing is known any more."""
    connection = driver(session)
    rows = connection.execute(
        "WITH last AS (SELECT key, max(id) AS id FROM review WHERE project = %(project)s GROUP BY key ORDER BY 2 DESC LIMIT %(most)s)"
        " SELECT l.key, l.id, r.judgement <> 'accept', r.cause,"
        " (SELECT b.before FROM review b WHERE b.key = l.key AND b.before IS NOT NULL ORDER BY b.id DESC LIMIT 1),"
        " t.group_id, e.environment, (SELECT s.share FROM spot_check s WHERE s.key = l.key), r.canary"
        " FROM last l JOIN review r ON r.id = l.id JOIN trajectory t ON t.key = l.key JOIN environment_version e ON e.id = t.environment_version ORDER BY l.id",
        {"project": project, "most": most},
    ).fetchall()
    found = _findings(session, project, [row[0] for row in rows])
    return [
        Judged(key, number, bad, cause_of(cause), None if before is None else Verdict(before), group, environment, share, canary, found.get(key, ()))
        for key, number, bad, cause, before, group, environment, share, canary in rows
    ]


def _findings(session: Session, project: int, keys: Sequence[UUID]) -> Mapping[UUID, tuple[Finding, ...]]:
    query = (
        "SELECT f.key, f.body FROM finding f WHERE f.key = ANY(%s) AND NOT EXISTS"
        " (SELECT FROM revocation r WHERE r.project = %s AND r.check_version = f.check_version) ORDER BY f.key, f.position"
    )
    found: dict[UUID, list[Finding]] = {}
    for key, body in driver(session).execute(query, (list(keys), project)).fetchall():
        found.setdefault(key, []).append(msgspec.json.decode(body, type=Finding))
    return {key: tuple(some) for key, some in found.items()}


def unjudged(session: Session, project: int) -> dict[Verdict, float]:
    """About how many trajectories of each verdict no person judged; of accepted ones as many as those that chance picked stand for."""
    connection = driver(session)
    one = "SELECT count(*) FROM (SELECT FROM verdict WHERE project = %s AND verdict = %s AND verdict >= 2 AND NOT by_person LIMIT %s) s"
    counts = {verdict: connection.execute(one, (project, int(verdict), COUNTED)).fetchone() for verdict in (Verdict.FLAG, Verdict.QUARANTINE)}
    accepted = connection.execute(
        "SELECT coalesce(sum(1 / s.share), 0) FROM spot_check s JOIN verdict v ON v.key = s.key WHERE s.project = %s AND s.open AND v.verdict = %s",
        (project, int(Verdict.ACCEPT)),
    ).fetchone()
    return {verdict: float(row[0]) for verdict, row in {**counts, Verdict.ACCEPT: accepted}.items() if row is not None}
