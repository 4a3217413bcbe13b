"""Which checks an audit runs for a trajectory: the selection that intake stored with it, matched with what is installed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlmodel import Session

from inspector.check import LATE_NEEDS, Check
from inspector.engine import Assessment
from inspector.store import decisions, selections
from inspector.verdict import Outcome, Selected

FRESH_S = 2.0  # how long an act of revocation may take to reach this process


def selected(checks: Sequence[Check]) -> tuple[Selected, ...]:
    """What is stored of the checks that new arrivals get."""
    return tuple(Selected(check=c.name, version=c.version, parameters=c.digest, late=c.late) for c in checks)


@dataclass(frozen=True)
class Plan:
    """A selection as it can be run here."""

    selected: tuple[Selected, ...]
    checks: tuple[Check, ...]  # those installed with that version and those parameters
    positions: tuple[int, ...]  # of each in the selection
    ids: Mapping[tuple[str, int], int]  # (check, version) -> id of its check version
    revoked: frozenset[int]  # ids whose findings no longer decide
    revocations: int = 0  # how many acts of revocation that takes into account

    @cached_property
    def late(self) -> Mapping[int, Check]:
        """By position: what runs after the provisional decision, with what there is here to run it."""
        placed = zip(self.positions, self.checks, strict=True)
        return {at: check for at, check in placed if check.late and not _wanting(check)}

    @cached_property
    def gone(self) -> Mapping[int, str]:
        """By position: late checks that cannot be run here, with the reason."""
        chosen = enumerate(self.selected)
        return {at: self._missing_grouped.get(at, _not_installed(one)) for at, one in chosen if one.late and at not in self.late}

    def spread(self, assessment: Assessment, *, grouped: bool) -> Assessment:
        """An assessment by the installed checks, told in the positions of the whole selection; what never comes is not assessed."""
        told = self._placed(assessment)
        missing = self._missing(grouped=grouped)
        if not missing:
            return told
        outcomes = bytearray(told.outcomes)
        for at in missing:
            outcomes[at] = Outcome.NOT_ASSESSED
        return Assessment(bytes(outcomes), told.findings, {**told.notes, **missing})

    def _missing(self, *, grouped: bool) -> Mapping[int, str]:
        """By position: what a late check needs that there is not."""
        return self._missing_grouped if grouped else self._missing_alone

    @cached_property
    def _missing_grouped(self) -> Mapping[int, str]:
        placed = zip(self.positions, self.checks, strict=True)
        return {at: need for at, check in placed if check.late and (need := _wanting(check))}

    @cached_property
    def _missing_alone(self) -> Mapping[int, str]:
        return {**dict.fromkeys(self.late, "group: it belongs to none"), **self._missing_grouped}

    def _placed(self, assessment: Assessment) -> Assessment:
        if len(self.positions) == len(self.selected):
            return assessment
        outcomes = bytearray([Outcome.NOT_ASSESSED] * len(self.selected))
        notes = {at: _not_installed(one) for at, one in enumerate(self.selected)}
        for position, outcome in zip(self.positions, assessment.outcomes, strict=True):
            outcomes[position] = outcome
            del notes[position]
        notes |= {self.positions[at]: note for at, note in assessment.notes.items()}
        return Assessment(bytes(outcomes), assessment.findings, notes)

    def all_erred(self, note: str, *, grouped: bool) -> Assessment:
        """What is left to say when the process that ran the checks died of it."""
        missing = self._missing(grouped=grouped)
        waiting = self.late.keys() - missing.keys()
        erred = [at for at in range(len(self.selected)) if at not in waiting and at not in missing]
        outcomes = bytearray([Outcome.PENDING] * len(self.selected))
        for positions, outcome in ((erred, Outcome.ERROR), (missing, Outcome.NOT_ASSESSED)):
            for at in positions:
                outcomes[at] = outcome
        return Assessment(bytes(outcomes), (), {**dict.fromkeys(erred, note), **missing})


def _not_installed(selected: Selected) -> str:
    return f"version {selected.version} with these parameters is no longer installed"


def _wanting(check: Check) -> str:
    """What it needs that nobody provides; empty where it can run."""
    return ", ".join(need.__name__.lower() for need in check.needs if need in LATE_NEEDS)


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

    def forget(self) -> None:
        """Look everything up again: a check was revoked."""
        self._plans.clear()

    def _make(self, session: Session, project: int, chosen: tuple[Selected, ...]) -> Plan:
        found = [(at, check) for at, s in enumerate(chosen) if (check := self._match(s)) is not None]
        ids = {(name, version): id_ for (name, version, _), id_ in selections.check_versions(session, chosen).items()}
        revocations = decisions.revocations(session, project)  # before what they say: an act in between only makes us look again
        revoked = selections.revoked(session, project, list(ids.values()))
        return Plan(chosen, tuple(check for _, check in found), tuple(at for at, _ in found), ids, frozenset(revoked), revocations)

    def _match(self, wanted: Selected) -> Check | None:
        check = self._installed.get(wanted.check)
        return check if check is not None and (check.version, check.digest) == (wanted.version, wanted.parameters) else None
