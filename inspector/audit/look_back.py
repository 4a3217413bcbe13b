"""Has trajectories audited once more that were closed before their twins, or at the same time by another worker, and could not know of them.

A promise is written with the closing transaction and kept after its commit, when both of two such transactions can see
each other. Only first audits look back, and the first that knows of a final state, so it ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlmodel import Session

from inspector.audit.subjects import Audited
from inspector.store import look_backs, work
from inspector.store.verdicts import NewVerdict


def is_new(audited: Audited, earlier: NewVerdict | None) -> bool:
    """Whether others could not know of it before: it was never audited, or what it left was attached later."""
    return earlier is None or (earlier.state is None and audited.state is not None)


def promise(session: Session, new: Sequence[Audited]) -> list[int]:
    """To look back from these, of which others could not know before; ids for `keep`."""
    keys = [audited.subject.key for audited in new if audited.content is not None]
    return [look_backs.add(session, keys)] if keys else []


def keep(session: Session, promised: Sequence[int]) -> None:
    """Ask for another audit of those that disagree in their reward with a twin, or with one that left the same."""
    keys = look_backs.take(session, promised) if promised else []
    again: dict[int, list[UUID]] = {}
    for project, key in look_backs.disagreeing(session, keys) if keys else ():
        again.setdefault(project, []).append(key)
    for project, disagreeing in again.items():
        work.add_trajectories(session, project, disagreeing)
