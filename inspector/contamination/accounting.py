"""Which trajectories, updates and policy versions of a run are contaminated, and how much of each update's reward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlmodel import Session

from inspector.contamination.lineage import inherits, line
from inspector.store import contamination, used
from inspector.store.contamination import Chosen, Counts, InEnvironment, Totals
from inspector.store.used import Update


class Affected(NamedTuple):
    """An update that used something bad, or whose version descends from one that did."""

    update: Update
    bad: Counts
    inherited: bool  # it began from a version that descends from a bad update
    unknown: int  # rows that were never posted

    @property
    def share(self) -> float:
        """Of its absolute reward, 0 where it had none."""
        return self.bad.mass / self.update.mass if self.update.mass else 0.0


class Account(NamedTuple):
    """Of a whole run."""

    updates: int  # that were told
    used: int  # rows with a weight, of all updates
    mass: float
    unknown: int
    affected: Sequence[Affected]
    bad: Totals
    environments: Sequence[InEnvironment]
    first: Update | None  # that used something bad
    newest_is_clean: bool  # the run went back, or nothing bad was used

    @property
    def direct(self) -> int:
        """Updates that used something bad."""
        return sum(one.bad.rows > 0 for one in self.affected)


def account(session: Session, project: int, run: int, chosen: Chosen) -> Account:
    """What of a run is contaminated by what was chosen."""
    used.recognise(session, project, run)
    updates = used.updates(session, run)
    counted = contamination.count(session, project, run, chosen)
    counts = counted.updates
    unknown = contamination.unknowns(session, run)
    bad = [update.number in counts for update in updates]
    inherited = inherits(updates, bad)
    none = Counts(0, 0, 0, 0.0)
    affected = [
        Affected(update, counts.get(update.number, none), taint, unknown.get(update.number, 0))
        for update, own, taint in zip(updates, bad, inherited, strict=True)
        if own or taint
    ]
    return Account(
        updates=len(updates),
        used=sum(update.used for update in updates),
        mass=sum(update.mass for update in updates),
        unknown=sum(unknown.values()),
        affected=affected,
        bad=counted.totals,
        environments=counted.environments,
        first=next((update for update, own in zip(updates, bad, strict=True) if own), None),
        newest_is_clean=not any(update.number in counts for update in line(updates)),
    )
