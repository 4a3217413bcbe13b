"""What was learnt of a project's episodes: a window of each environment version's last ones, and the models fitted on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Engine, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlmodel import Session

from inspector.errors import Unavailable
from inspector.store.session import driver
from inspector.store.stretches import Location

KEPT = 3  # models of a project whose bodies stay; of older ones only that they were
NIL = UUID(int=0)
LOCK = 0x6C6561726E  # an advisory lock, of whoever learns


class Windowed(NamedTuple):
    """An environment version with what is kept of its episodes; empty where nothing is yet."""

    id: int
    environment: str
    version: str
    body: bytes


class Readable(NamedTuple):
    """A trajectory that an audit could read."""

    key: UUID
    location: Location
    length: int


class Fitted(NamedTuple):
    """A model as it is listed."""

    version: int
    digest: bytes  # sha256 of the body


class Due(NamedTuple):
    """A project of which enough is new."""

    project: int
    uuid: UUID


@contextmanager
def learning_alone(engine: Engine, lock: int = LOCK) -> Iterator[bool]:
    """False where another process is learning at this moment; the lock goes with its connection. Raises Unavailable."""
    try:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            alone = bool(connection.execute(text("SELECT pg_try_advisory_lock(:lock)"), {"lock": lock}).scalar())
            try:
                yield alone
            finally:
                if alone:
                    connection.execute(text("SELECT pg_advisory_unlock(:lock)"), {"lock": lock})
    except (OperationalError, PoolTimeout) as error:
        raise Unavailable(f"the database is away: {type(error).__name__}") from error


def due(session: Session, first: int, share: float) -> list[Due]:
    """Projects with `first` trajectories and no model, or with a share of what their model was learnt from since then."""
    rows = (
        driver(session)
        .execute(
            "WITH latest AS (SELECT DISTINCT ON (project) project, until, episodes FROM baseline_model ORDER BY project, version DESC),"
            " wanted AS (SELECT p.id, p.uuid, coalesce(l.until, %(nil)s) AS until, coalesce(ceil(l.episodes * %(share)s)::bigint, %(first)s) AS enough"
            " FROM project p LEFT JOIN latest l ON l.project = p.id)"
            " SELECT w.id, w.uuid FROM wanted w WHERE (SELECT count(*) FROM"
            " (SELECT FROM trajectory t WHERE t.project = w.id AND t.key > w.until LIMIT w.enough) s) >= w.enough ORDER BY w.id",
            {"nil": NIL, "share": share, "first": first},
        )
        .fetchall()
    )
    return [Due(*row) for row in rows]


def posted(session: Session, project: int, most: int) -> int:
    """How many trajectories a project has, counted up to a bound."""
    row = driver(session).execute("SELECT count(*) FROM (SELECT FROM trajectory WHERE project = %s LIMIT %s) s", (project, most)).fetchone()
    assert row is not None
    return int(row[0])


def windows(session: Session, project: int, most: int) -> list[Windowed]:
    """The environment versions to which something was posted last, newest first."""
    rows = (
        driver(session)
        .execute(
            "WITH active AS (SELECT e.id, e.environment, e.version,"
            " (SELECT t.key FROM trajectory t WHERE t.environment_version = e.id AND t.project = %(project)s ORDER BY t.key DESC LIMIT 1) AS newest"
            " FROM project_environment p JOIN environment_version e ON e.id = p.environment_version WHERE p.project = %(project)s)"
            " SELECT a.id, a.environment, a.version, coalesce(w.body, '') FROM active a"
            " LEFT JOIN baseline_window w ON w.project = %(project)s AND w.environment_version = a.id"
            " WHERE a.newest IS NOT NULL ORDER BY a.newest DESC LIMIT %(most)s",
            {"project": project, "most": most},
            binary=True,
        )
        .fetchall()
    )
    return [Windowed(id_, environment, version, bytes(body)) for id_, environment, version, body in rows]


def newest(session: Session, project: int, environment_version: int, most: int) -> list[Readable]:
    """The last trajectories that an audit could read, newest first."""
    rows = (
        driver(session)
        .execute(
            "SELECT t.key, t.segment, t.place, t.line, t.length FROM trajectory t JOIN verdict v ON v.key = t.key"
            " WHERE t.environment_version = %s AND t.project = %s AND v.content IS NOT NULL ORDER BY t.key DESC LIMIT %s",
            (environment_version, project, most),
            binary=True,
        )
        .fetchall()
    )
    return [Readable(row[0], Location(*row[1:4]), row[4]) for row in rows]


def keep_window(session: Session, project: int, environment_version: int, body: bytes) -> None:
    """What is known of an environment version from now on."""
    driver(session).execute(
        "INSERT INTO baseline_window (project, environment_version, body) VALUES (%s, %s, %s)"
        " ON CONFLICT (project, environment_version) DO UPDATE SET body = excluded.body",
        (project, environment_version, body),
    )


def confirmed(session: Session, keys: Iterable[UUID]) -> set[UUID]:
    """Those of these that a person judged unfit."""
    rows = driver(session).execute("SELECT key FROM verdict WHERE key = ANY(%s) AND by_person AND verdict = 3", (list(keys),), binary=True).fetchall()
    return {row[0] for row in rows}


def added(session: Session, keys: Sequence[UUID]) -> dict[UUID, int]:
    """How many fields came later, of those trajectories to which any did."""
    rows = driver(session).execute("SELECT key, count(*) FROM patch WHERE key = ANY(%s) GROUP BY key", (list(keys),), binary=True).fetchall()
    return dict(rows)


def add_model(session: Session, project: int, digest: bytes, episodes: int, until: UUID, body: bytes) -> int:
    """Keep a fitted model; its version, which is the one after the last. The bodies of old ones go."""
    connection = driver(session)
    connection.execute("SELECT FROM project WHERE id = %s FOR NO KEY UPDATE", (project,))  # two fits at once: one after the other
    row = connection.execute(
        "INSERT INTO baseline_model (project, version, digest, episodes, until, body) SELECT %(p)s, coalesce(max(version), 0) + 1, %(digest)s,"
        " %(episodes)s, %(until)s, %(body)s FROM baseline_model WHERE project = %(p)s RETURNING version",
        {"p": project, "digest": digest, "episodes": episodes, "until": until, "body": body},
    ).fetchone()
    assert row is not None
    connection.execute("UPDATE baseline_model SET body = NULL WHERE project = %s AND version <= %s AND body IS NOT NULL", (project, row[0] - KEPT))
    return int(row[0])


def latest(session: Session, project: int) -> Fitted | None:
    """The model that holds now."""
    row = driver(session).execute("SELECT version, digest FROM baseline_model WHERE project = %s ORDER BY version DESC LIMIT 1", (project,)).fetchone()
    return None if row is None else Fitted(row[0], bytes(row[1]))


def body(session: Session, project: int, version: int) -> bytes | None:
    """A packed model; None where its body is gone."""
    row = driver(session).execute("SELECT body FROM baseline_model WHERE project = %s AND version = %s", (project, version), binary=True).fetchone()
    return None if row is None or row[0] is None else bytes(row[0])
