"""Keeps what a trainer says of an update, and looks at once at what is known of it."""

from __future__ import annotations

from sqlmodel import Session

from inspector.contamination import advising
from inspector.store import decisions, runs, used
from inspector.store.used import Told


def report(session: Session, project: int, run: str, told: Told, *, share: float) -> bool:
    """False where the same was said before. Raises Conflict for another body.

    Nobody logs anything in the project between the look and the commit: what is decided later finds the update there.
    """
    [(run_id, _)] = runs.ensure(session, project, [(run, None)]).values()
    number = used.add(session, project, run_id, told)
    if number is None:
        return False
    decisions.hold(session, project)
    if advising.look(session, project, run_id, [number], share=share):
        decisions.notify(session, [project])
    return True
