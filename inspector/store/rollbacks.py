"""Advice to go back to a checkpoint, as it stands for each run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlmodel import Session

from inspector.store.session import driver


class Advised(NamedTuple):
    """Advice that stands."""

    seq: int
    number: int  # of the first update that is to be undone
    policy_version: int
    sources: Sequence[str]


def standing(session: Session, run: int) -> Advised | None:
    """The advice that stands for a run."""
    row = driver(session).execute("SELECT seq, number, policy_version, sources FROM rollback WHERE run = %s AND open", (run,)).fetchone()
    return None if row is None else Advised(*row)


def close(session: Session, run: int) -> None:
    """It was followed, taken back, or other advice comes in its place."""
    driver(session).execute("UPDATE rollback SET open = false WHERE run = %s AND open", (run,))


def add(session: Session, project: int, run: int, advised: Advised) -> None:
    """From now on this stands."""
    driver(session).execute(
        "INSERT INTO rollback (project, seq, run, number, policy_version, sources) VALUES (%s, %s, %s, %s, %s, %s)",
        (project, advised.seq, run, advised.number, advised.policy_version, list(advised.sources)),
    )
