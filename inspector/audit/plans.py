"""Which checks an audit runs for a trajectory: the selection that intake stored with it, matched with what is installed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlmodel import Session

from inspector.check import Check
from inspector.engine import Assessment
from inspector.store import selections
from inspector.verdict import Outcome, Selected

FRESH_S = 2.0  # how long an act of revocation may take to reach this process


def selected(checks: Sequence[Check]) -> tuple[Selected, ...]:
    """What is stored of the checks that new arrivals get: those of the fast lane.

    Nothing runs late checks yet. Selected, they would stay pending, and a trajectory would never become final.
    """
    return tuple(Selected(check=c.name, version=c.version, parameters=c.digest) for c in checks if not c.late)


@dataclass(frozen=True)
class Plan:
    """A selection as it can be run here."""

    selected: tuple[Selected, ...]
    checks: tuple[Check, ...]  # those installed with that version and those parameters
    positions: tuple[int, ...]  # of each in the selection
    ids: Mapping[tuple[str, int], int]  # (check, version) -> id of its check version
    revoked: frozenset[int]  # ids whose findings no longer decide

    @property
    def late(self) -> bool:
        """Whether anything of it runs after the provisional decision."""
        return any(s.late for s in self.selected)

    def spread(self, assessment: Assessment) -> Assessment:
        """An assessment by the installed checks, told in the positions of the whole selection."""
        if len(self.positions) == len(self.selected):
            return assessment
        outcomes = bytearray([Outcome.NOT_ASSESSED] * len(self.selected))
        notes = {at: f"version {s.version} with these parameters is no longer installed" for at, s in enumerate(self.selected)}
        for position, outcome in zip(self.positions, assessment.outcomes, strict=True):
            outcomes[position] = outcome
            del notes[position]
        notes |= {self.positions[at]: note for at, note in assessment.notes.items()}
        return Assessment(bytes(outcomes), assessment.findings, notes)

    def all_erred(self, note: str) -> Assessment:
        """What is left to say when the process that ran the checks died of it."""
        fast = [at for at, s in enumerate(self.selected) if not s.late]
        outcomes = bytearray([Outcome.PENDING] * len(self.selected))
        for at in fast:
            outcomes[at] = Outcome.ERROR
        return Assessment(bytes(outcomes), (), dict.fromkeys(fast, note))


class Plans:
    """The plans of this process; revocations are looked up again every two seconds."""

    def __init__(self, installed: Mapping[str, Check]) -> None:
        self._installed = installed
        self._plans: dict[tuple[int, int], Plan] = {}
        self._at = 0.0

    def of(self, session: Session, project: int, selection: int) -> Plan:
        """The plan of a stored selection in a project."""
        if time.monotonic() - self._at > FRESH_S:
            self._plans.clear()
            self._at = time.monotonic()
        if (project, selection) not in self._plans:
            self._plans[project, selection] = self._make(session, project, selections.read(session, selection))
        return self._plans[project, selection]

    def _make(self, session: Session, project: int, chosen: tuple[Selected, ...]) -> Plan:
        found = [(at, check) for at, s in enumerate(chosen) if (check := self._match(s)) is not None]
        ids = {(name, version): id_ for (name, version, _), id_ in selections.check_versions(session, chosen).items()}
        revoked = selections.revoked(session, project, list(ids.values()))
        return Plan(chosen, tuple(check for _, check in found), tuple(at for at, _ in found), ids, frozenset(revoked))

    def _match(self, wanted: Selected) -> Check | None:
        check = self._installed.get(wanted.check)
        return check if check is not None and (check.version, check.digest) == (wanted.version, wanted.parameters) else None
