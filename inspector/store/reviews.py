"""What people judged, kept apart from what it led to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlmodel import Session

from inspector.store.codes import CAUSE_CODE, cause_of
from inspector.store.session import driver
from inspector.verdict import Cause, Verdict


class Said(NamedTuple):
    """One person's judgement of a trajectory."""

    person: str
    judgement: str  # accept | quarantine | override
    reward: float | None
    cause: Cause | None  # as the person said; None where they left it to the checks
    note: str
    before: Verdict | None = None  # of the checks; None where another person's stood
    canary: bool = False  # a known fault that was planted, to see whether the checks find it


class Review(NamedTuple):
    """A judgement, and the number of the decision that it made."""

    person: str
    judgement: str
    reward: float | None
    cause: Cause | None
    note: str
    seq: int
    reviewed_at: datetime


def add(session: Session, project: int, key: UUID, said: Said, seq: int) -> None:
    """Keep a judgement together with the number of the decision that it made."""
    driver(session).execute(
        "INSERT INTO review (project, key, person, judgement, reward, cause, note, before, canary, seq) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (project, key, said.person, said.judgement, said.reward, CAUSE_CODE[said.cause], said.note, said.before, said.canary, seq),
    )


def of(session: Session, project: int, key: UUID) -> Sequence[Review]:
    """Every judgement of a trajectory, oldest first."""
    rows = (
        driver(session)
        .execute("SELECT person, judgement, reward, cause, note, seq, reviewed_at FROM review WHERE key = %s AND project = %s ORDER BY id", (key, project))
        .fetchall()
    )
    return [Review(person, judgement, reward, cause_of(cause), note, seq, at) for person, judgement, reward, cause, note, seq, at in rows]


def count_since(session: Session, project: int, begin: datetime, most: int) -> int:
    """How many trajectories people have judged since then, each once; no more than `most` judgements are looked at."""
    looked_at = "SELECT key FROM review WHERE project = %s AND reviewed_at >= %s ORDER BY reviewed_at DESC LIMIT %s"
    row = driver(session).execute(f"SELECT count(DISTINCT key) FROM ({looked_at}) s", (project, begin, most)).fetchone()
    return int(row[0]) if row else 0
