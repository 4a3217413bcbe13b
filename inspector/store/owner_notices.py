"""What projects are told of environment versions that they own, or that nobody owns and they posted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec
from sqlmodel import Session

from inspector.store.environments import EnvironmentName
from inspector.store.session import driver
from inspector.store.standings import Place
from inspector.store.states import WHOLE


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """What happened, on what evidence, and what may be done."""

    kind: str  # quarantined | watch | probation | active | asked | reminded
    environment: str
    version: str
    task: str | None
    note: str  # the evidence in words
    where: str  # it can be read
    release: list[str]  # conditions, each by itself
    reproduce: str | None  # a command


class Noticed(NamedTuple):
    """A notice as it is kept."""

    id: int
    notice: Notice
    noticed_at: datetime


def owners(session: Session, environment_version: int) -> list[int]:
    """The project that declared it, else all that posted it."""
    rows = driver(session).execute(
        "SELECT project FROM project_environment WHERE environment_version = %(v)s AND (owner OR NOT EXISTS"
        " (SELECT FROM project_environment o WHERE o.environment_version = %(v)s AND o.owner)) ORDER BY project",
        {"v": environment_version},
    )
    return [int(row[0]) for row in rows.fetchall()]


def add(session: Session, projects: Sequence[int], place: Place, notice: Notice) -> None:
    """Tell these projects."""
    body, task = msgspec.json.encode(notice), None if place.task == WHOLE else place.task
    driver(session).execute(
        "INSERT INTO notice (project, environment_version, task, kind, body) SELECT id, %s, %s, %s, %s FROM unnest(%s::bigint[]) AS id",
        (place.environment_version, task, notice.kind, body, list(projects)),
    )


def page(session: Session, project: int, before: int | None, limit: int) -> list[Noticed]:
    """A project's notices, the newest first."""
    rows = driver(session).execute(
        "SELECT id, body, noticed_at FROM notice WHERE project = %s AND (%s::bigint IS NULL OR id < %s) ORDER BY project DESC, id DESC LIMIT %s",
        (project, before, before, limit),
    )
    return [Noticed(id_, msgspec.json.decode(body, type=Notice), at) for id_, body, at in rows.fetchall()]


def name(session: Session, place: Place) -> tuple[EnvironmentName, str | None]:
    """An environment version by its name, with that of its task."""
    row = (
        driver(session)
        .execute(
            "SELECT v.environment, v.version, t.task FROM environment_version v LEFT JOIN task t ON t.id = %s WHERE v.id = %s",
            (place.task, place.environment_version),
        )
        .fetchone()
    )
    assert row is not None, "environment versions are never deleted"
    return EnvironmentName(row[0], row[1]), row[2]
