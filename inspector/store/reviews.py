"""What people judged, kept apart from what it led to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlmodel import Session

from inspector.store.session import driver


class Review(NamedTuple):
    """One person's judgement of a trajectory."""

    person: str
    judgement: str  # accept | quarantine | override
    reward: float | None
    note: str
    seq: int
    reviewed_at: datetime


def add(session: Session, project: int, key: UUID, person: str, judgement: str, reward: float | None, note: str, seq: int) -> None:
    """Keep a judgement together with the number of the decision that it made."""
    driver(session).execute(
        "INSERT INTO review (project, key, person, judgement, reward, note, seq) VALUES (%s, %s, %s, %s, %s, %s, %s)",
        (project, key, person, judgement, reward, note, seq),
    )


def of(session: Session, project: int, key: UUID) -> Sequence[Review]:
    """Every judgement of a trajectory, oldest first."""
    rows = (
        driver(session)
        .execute("SELECT person, judgement, reward, note, seq, reviewed_at FROM review WHERE key = %s AND project = %s ORDER BY id", (key, project))
        .fetchall()
    )
    return [Review(*row) for row in rows]
