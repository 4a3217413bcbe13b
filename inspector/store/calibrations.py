"""The models from findings to a probability, one line of versions a project."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from sqlmodel import Session

from inspector.store.session import driver

KEPT = 10  # models of a project whose bodies stay


class Latest(NamedTuple):
    """The model that holds, as it is listed."""

    version: int
    digest: bytes  # sha256 of the body
    policy: str  # the digest of the policy that it was fitted under
    why: str
    fitted_at: datetime


def due(session: Session, policy: str, first: int, share: float) -> list[int]:
    """Projects with `first` new reviews, and as many as a share of those before; or with any, where the policy is another."""
    rows = (
        driver(session)
        .execute(
            "WITH latest AS (SELECT DISTINCT ON (project) project, until, policy FROM calibration ORDER BY project, version DESC),"
            " counted AS (SELECT r.project, count(*) AS all_of_them, count(*) FILTER (WHERE r.id > coalesce(l.until, 0)) AS new, min(l.policy) AS policy"
            " FROM review r LEFT JOIN latest l ON l.project = r.project GROUP BY r.project)"
            " SELECT project FROM counted WHERE new >= greatest(%(first)s, (all_of_them - new) * %(share)s) OR policy <> %(policy)s ORDER BY project",
            {"policy": policy, "first": first, "share": share},
        )
        .fetchall()
    )
    return [row[0] for row in rows]


def add(session: Session, project: int, digest: bytes, policy: str, until: int, why: str, body: bytes) -> int:
    """Keep a model that holds from now on; its version. The bodies of old ones go."""
    connection = driver(session)
    connection.execute("SELECT FROM project WHERE id = %s FOR NO KEY UPDATE", (project,))  # two at once: one after the other
    row = connection.execute(
        "INSERT INTO calibration (project, version, digest, policy, until, why, body) SELECT %(project)s, coalesce(max(version), 0) + 1, %(digest)s,"
        " %(policy)s, %(until)s, %(why)s, %(body)s FROM calibration WHERE project = %(project)s RETURNING version",
        {"project": project, "digest": digest, "policy": policy, "until": until, "why": why, "body": body},
    ).fetchone()
    assert row is not None
    connection.execute("UPDATE calibration SET body = NULL WHERE project = %s AND version <= %s AND body IS NOT NULL", (project, row[0] - KEPT))
    return int(row[0])


def looked(session: Session, project: int, version: int, until: int) -> None:
    """What came until this review was looked at, and the model stays."""
    driver(session).execute("UPDATE calibration SET until = greatest(until, %s) WHERE project = %s AND version = %s", (until, project, version))


def latest(session: Session, project: int) -> Latest | None:
    """The model that holds now."""
    query = "SELECT version, digest, policy, why, fitted_at FROM calibration WHERE project = %s ORDER BY version DESC LIMIT 1"
    row = driver(session).execute(query, (project,)).fetchone()
    return None if row is None else Latest(row[0], bytes(row[1]), *row[2:])


def body(session: Session, project: int, version: int) -> bytes | None:
    """A packed model; None where its body is gone."""
    row = driver(session).execute("SELECT body FROM calibration WHERE project = %s AND version = %s", (project, version), binary=True).fetchone()
    return None if row is None or row[0] is None else bytes(row[0])
