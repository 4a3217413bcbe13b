"""Forgets what is older than the operator keeps: decisions behind the feed's horizon, and trajectories with their segments.

Rows go first, in small transactions; a day's segment files go once no row can point into them. Reviews stay: they are
labels of checks. A cursor that points behind the horizon is answered with the address of the snapshot.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Engine

from inspector.keys import first_key
from inspector.store import decisions, expiry, projects, trajectories
from inspector.store.session import transaction

SLICE = 20_000  # numbers of the log whose decisions are forgotten in one transaction
ROWS = 1_000  # trajectories that are forgotten in one transaction
SLACK = timedelta(hours=1)  # between a key and the segment of its line


class Keeping(NamedTuple):
    """What is kept."""

    feed_horizon: int  # newest decisions of each project
    days: float  # that a trajectory is kept; 0: for ever


class Forgotten(NamedTuple):
    """How much was forgotten."""

    decisions: int
    trajectories: int
    files: int


def forget(engine: Engine, root: Path, keeping: Keeping, now: datetime) -> Forgotten:
    """Forget what is too old at `now`. May be run again, beside a running service, and beside itself."""
    with transaction(engine) as session:
        everyone = projects.ids(session)
    done = [_of_project(engine, root, project, uuid, keeping, now) for project, uuid in everyone]
    return Forgotten(*(sum(counted) for counted in zip(*done, strict=True))) if done else Forgotten(0, 0, 0)


def _of_project(engine: Engine, root: Path, project: int, uuid: UUID, keeping: Keeping, now: datetime) -> Forgotten:
    entries = _decisions(engine, project, keeping.feed_horizon)
    if keeping.days <= 0:
        return Forgotten(entries, 0, 0)
    before = now - timedelta(days=keeping.days)
    return Forgotten(entries, _trajectories(engine, project, before), _files(engine, root, project, uuid, before))


def _decisions(engine: Engine, project: int, horizon: int) -> int:
    with transaction(engine) as session:
        at, first = decisions.move_horizon(session, project, horizon)
    done = 0
    while at < first:
        with transaction(engine) as session:
            done += decisions.forget(session, project, at, min(first, at + SLICE))
        at += SLICE
    return done


def _trajectories(engine: Engine, project: int, before: datetime) -> int:
    done = 0
    while True:
        with transaction(engine) as session:
            gone = trajectories.forget(session, project, first_key(before), ROWS)
        done += gone
        if gone < ROWS:
            return done


def _files(engine: Engine, root: Path, project: int, uuid: UUID, before: datetime) -> int:
    done = 0
    for day, folder in expiry.days(root, uuid):
        end = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1) + SLACK
        if end > before:
            break
        with transaction(engine) as session:
            if trajectories.any_before(session, project, first_key(end)):
                break  # one of them still waits for its audit
        done += expiry.remove(folder)
    return done
