"""Projects, their API keys, and one-time logins to the dashboard."""

from __future__ import annotations

import hashlib
import secrets
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import ColumnElement, delete, func, or_, update
from sqlmodel import Session, col, select

from inspector.errors import Conflict, Unauthenticated, Unknown
from inspector.store.tables import FeedRow, KeyRow, LoginRow, ProjectRow

KEY_PREFIX = "ins_"
SESSION_PREFIX = "ins_session_"  # of a person who signed in to the dashboard
KEY_BYTES = 32  # 256 bits


class Role(StrEnum):
    """What a key may do; not a ladder."""

    TRAINER = "trainer"
    REVIEWER = "reviewer"
    OWNER = "owner"
    ADMIN = "admin"
    PROBER = "prober"  # of a sandbox worker: the work of probes, and nothing else


INSTALLATION = (Role.ADMIN, Role.PROBER)  # their keys belong to no project


class Principal(NamedTuple):
    """Who is asking, on behalf of which project."""

    key: UUID
    name: str
    role: Role
    project: int  # 0 for the installation's own keys, which have no project
    project_uuid: UUID | None
    project_name: str | None


class NewKey(NamedTuple):
    """A key at the only moment when its secret is known."""

    id: UUID
    secret: str


class KeyListing(NamedTuple):
    """A key as it is listed: never its secret."""

    id: UUID
    name: str
    role: Role
    prefix: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


def digest(secret: str) -> bytes:
    """What is stored of a secret. It has 256 random bits, so a plain hash is enough."""
    return hashlib.sha256(secret.encode()).digest()


def create(session: Session, name: str) -> UUID:
    """A new project with its empty feed; raises Conflict when the name is taken."""
    if session.exec(select(ProjectRow.id).where(ProjectRow.name == name)).first() is not None:
        raise Conflict(f"there is a project {name!r} already", path="$.name")
    project = ProjectRow(uuid=uuid4(), name=name)
    session.add(project)
    session.flush()
    session.add(FeedRow(project=_id(project), epoch=uuid4()))
    return project.uuid


def restore(session: Session, uuid: UUID) -> int:
    """The id of a project by its uuid; one that the database has lost is made again, under its uuid as its name."""
    row = session.exec(select(ProjectRow).where(ProjectRow.uuid == uuid)).first()
    if row is None:
        row = ProjectRow(uuid=uuid, name=str(uuid))
        session.add(row)
        session.flush()
        session.add(FeedRow(project=_id(row), epoch=uuid4()))
        session.flush()
    return _id(row)


def listing(session: Session) -> list[tuple[str, UUID, datetime]]:
    """(name, uuid, created_at) of every project, for the installation's admin."""
    rows = session.exec(select(ProjectRow).order_by(col(ProjectRow.name))).all()
    return [(row.name, row.uuid, row.created_at) for row in rows if row.created_at is not None]


def ids(session: Session) -> list[tuple[int, UUID]]:
    """(id, uuid) of every project: as many as an admin has made."""
    return [(id_, uuid) for id_, uuid in session.exec(select(ProjectRow.id, ProjectRow.uuid).order_by(col(ProjectRow.id))) if id_ is not None]


def by_name(session: Session, name: str) -> tuple[int, UUID]:
    """(id, uuid) of a project; raises Unknown."""
    row = session.exec(select(ProjectRow).where(ProjectRow.name == name)).first()
    if row is None:
        raise Unknown("project", name)
    return _id(row), row.uuid


def add_key(session: Session, project: int | None, name: str, role: Role, expires_at: datetime | None = None, secret: str | None = None) -> NewKey:
    """A new key; its secret is returned here and never again."""
    secret = secret or KEY_PREFIX + secrets.token_urlsafe(KEY_BYTES)
    row = KeyRow(id=uuid4(), project=project, name=name, role=role.value, sha256=digest(secret), prefix=secret[:10], expires_at=expires_at)
    session.add(row)
    session.flush()
    return NewKey(row.id, secret)


def keys(session: Session, project: int | None) -> list[KeyListing]:
    """The keys of a project, newest first."""
    rows = session.exec(select(KeyRow).where(KeyRow.project == project).order_by(col(KeyRow.created_at).desc())).all()
    return [KeyListing(r.id, r.name, Role(r.role), r.prefix, r.created_at, r.expires_at, r.revoked_at) for r in rows if r.created_at is not None]


def revoke_key(session: Session, project: int | None, key: UUID) -> None:
    """From now on the key is refused, at the latest when a process's cache of it runs out (5 s)."""
    changed = session.exec(
        update(KeyRow).where(col(KeyRow.id) == key, col(KeyRow.project) == project).values(revoked_at=func.coalesce(KeyRow.revoked_at, func.clock_timestamp()))
    )
    if changed.rowcount == 0:
        raise Unknown("key", key)


def authenticate(session: Session, secret: str) -> Principal:
    """Who holds this secret; raises Unauthenticated when nobody does, or not any more."""
    if secret.startswith(SESSION_PREFIX):
        opened = select(LoginRow.key).where(
            LoginRow.sha256 == digest(secret), col(LoginRow.used_at).is_not(None), col(LoginRow.expires_at) > func.clock_timestamp()
        )
        return _holder(session, col(KeyRow.id).in_(opened))
    return _holder(session, col(KeyRow.sha256) == digest(secret))


def _holder(session: Session, which: ColumnElement[bool]) -> Principal:
    live = (col(KeyRow.revoked_at).is_(None), or_(col(KeyRow.expires_at).is_(None), col(KeyRow.expires_at) > func.clock_timestamp()))
    found = session.exec(select(KeyRow, ProjectRow).outerjoin(ProjectRow, col(ProjectRow.id) == col(KeyRow.project)).where(which, *live)).first()
    if found is None:
        raise Unauthenticated("the key is unknown, expired or revoked")
    key, project = found
    if project is None:
        return Principal(key.id, key.name, Role(key.role), 0, None, None)
    return Principal(key.id, key.name, Role(key.role), _id(project), project.uuid, project.name)


def offer_login(session: Session, key: UUID, expires_at: datetime) -> str:
    """A token that opens the dashboard once, with this key's authority."""
    session.exec(delete(LoginRow).where(col(LoginRow.expires_at) < func.clock_timestamp()))
    token = secrets.token_urlsafe(KEY_BYTES)
    session.add(LoginRow(sha256=digest(token), key=key, expires_at=expires_at))
    return token


def take_login(session: Session, token: str, expires_at: datetime) -> tuple[str, Principal]:
    """Use up a login token: (the secret of a session, whose it is). Raises Unauthenticated.

    A session acts as the key that offered the login, and ends with it.
    """
    live = (col(LoginRow.used_at).is_(None), col(LoginRow.expires_at) > func.clock_timestamp())
    taken = session.exec(delete(LoginRow).where(col(LoginRow.sha256) == digest(token), *live).returning(col(LoginRow.key))).first()
    if taken is None:
        raise Unauthenticated("the login address was used already, or is too old")
    holder = _holder(session, col(KeyRow.id) == taken[0])
    secret = SESSION_PREFIX + secrets.token_urlsafe(KEY_BYTES)
    session.add(LoginRow(sha256=digest(secret), key=holder.key, expires_at=expires_at, used_at=datetime.now(UTC)))
    return secret, holder


def end_session(session: Session, secret: str) -> None:
    """Sign out; nothing happens where there is no such session."""
    session.exec(delete(LoginRow).where(col(LoginRow.sha256) == digest(secret)))


def _id(row: ProjectRow) -> int:
    assert row.id is not None
    return row.id
