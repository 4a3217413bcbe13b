"""Which checks were chosen for a trajectory: check versions, and the immutable lists that outcomes are read against."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import msgspec
from sqlmodel import Session

from inspector.errors import Unknown
from inspector.store.session import driver
from inspector.verdict import Selected


def ensure(session: Session, selected: Sequence[Selected]) -> int:
    """The id of the selection with exactly these checks, in this order; made on first use."""
    body = msgspec.json.encode(selected)
    digest = hashlib.sha256(body).digest()
    connection = driver(session)
    connection.execute("INSERT INTO selection (digest, body) VALUES (%s, %s) ON CONFLICT DO NOTHING", (digest, body))
    row = connection.execute("SELECT id FROM selection WHERE digest = %s", (digest,)).fetchone()
    assert row is not None
    return int(row[0])


def read(session: Session, selection: int) -> tuple[Selected, ...]:
    """The checks of a selection."""
    row = driver(session).execute("SELECT body FROM selection WHERE id = %s", (selection,)).fetchone()
    if row is None:
        raise Unknown("selection", selection)
    return msgspec.json.decode(row[0], type=tuple[Selected, ...])


def check_versions(session: Session, selected: Iterable[Selected]) -> dict[tuple[str, int, str], int]:
    """Ids of (check, version, parameters), made on first use."""
    wanted = sorted({(s.check, s.version, s.parameters) for s in selected})
    if not wanted:
        return {}
    arrays = [list(column) for column in zip(*wanted, strict=True)]
    connection = driver(session)
    connection.execute(
        'INSERT INTO check_version ("check", version, parameters) SELECT * FROM unnest(%s::text[], %s::int[], %s::text[]) ON CONFLICT DO NOTHING', arrays
    )
    rows = connection.execute(
        'SELECT c."check", c.version, c.parameters, c.id FROM check_version c JOIN unnest(%s::text[], %s::int[], %s::text[]) AS w(n, v, p)'
        ' ON c."check" = n AND c.version = v AND c.parameters = p',
        arrays,
    ).fetchall()
    return {(name, version, parameters): id_ for name, version, parameters, id_ in rows}


def ids_of(session: Session, check: str, version: int) -> list[int]:
    """Every check version of that name and version, whatever its parameters; raises Unknown when there is none."""
    rows = driver(session).execute('SELECT id FROM check_version WHERE "check" = %s AND version = %s', (check, version)).fetchall()
    if not rows:
        raise Unknown("check", f"{check}@{version}")
    return [int(row[0]) for row in rows]


def revoke(session: Session, ids: Sequence[int], project: int) -> None:
    """From now on findings of these check versions decide nothing in this project."""
    driver(session).execute("INSERT INTO revocation (project, check_version) SELECT %s, unnest(%s::bigint[]) ON CONFLICT DO NOTHING", (project, list(ids)))


def revoked(session: Session, project: int, ids: Sequence[int]) -> set[int]:
    """Those of these check versions that this project revoked: their findings no longer decide."""
    rows = driver(session).execute("SELECT check_version FROM revocation WHERE project = %s AND check_version = ANY(%s)", (project, list(ids))).fetchall()
    return {int(row[0]) for row in rows}


def policy(session: Session, name: str, digest: bytes) -> int:
    """The id of a policy version; made on first use."""
    connection = driver(session)
    connection.execute("INSERT INTO policy (name, digest) VALUES (%s, %s) ON CONFLICT DO NOTHING", (name, digest))
    row = connection.execute("SELECT id FROM policy WHERE digest = %s", (digest,)).fetchone()
    assert row is not None
    return int(row[0])


def policy_name(session: Session, policy: int) -> str:
    """As `default@1`."""
    row = driver(session).execute("SELECT name FROM policy WHERE id = %s", (policy,)).fetchone()
    return row[0] if row else "unknown"
