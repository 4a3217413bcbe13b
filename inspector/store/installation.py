"""The first project of a new installation, and a key for each role."""

from __future__ import annotations

from sqlmodel import Session, select

from inspector.store import projects
from inspector.store.projects import INSTALLATION, Role
from inspector.store.tables import KeyRow

FIRST_PROJECT = "default"


def ensure_prober(session: Session, secret: str) -> None:
    """The operator chose the key of the sandbox workers: from now on it is one."""
    if session.exec(select(KeyRow.id).where(KeyRow.sha256 == projects.digest(secret))).first() is None:
        projects.add_key(session, None, "sandbox workers", Role.PROBER, secret=secret)


def ensure_installation(session: Session) -> dict[str, str] | None:
    """Role -> key of a new installation; None where there are keys already, since a key is shown once."""
    if session.exec(select(KeyRow.id).limit(1)).first() is not None:
        return None
    projects.create(session, FIRST_PROJECT)
    project, _ = projects.by_name(session, FIRST_PROJECT)
    return {role.value: projects.add_key(session, None if role in INSTALLATION else project, f"first-{role.value}", role).secret for role in Role}
