"""Runs checks over a block of subjects; the one place that catches a check's mistakes.

A check that raises costs its own outcome on that subject, and nothing else. Only `Exception` is caught: whoever sets a
deadline interrupts with something that derives from `BaseException` alone. What a call does not run (late checks in
`run`, all but the checks of groups in `run_groups`) keeps the outcome `pending`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import msgspec

from inspector.check import Baselines, Batch, Check, Declaration, Finding, Group, History, Inconclusive, NotAssessed, Payments, Probed, Span, Trajectory, misfit
from inspector.showable import showable
from inspector.verdict import Outcome

MESSAGE_CHARS = 2000
QUOTE_CHARS = 500
NOTE_CHARS = 500
FINDINGS = 100  # of one check on one subject; the rest is not read, and a note says so

_NO_BASELINES = Baselines()
_UNDECLARED = Declaration()
_NEVER_PROBED = Probed()
_NO_PAYMENTS = Payments()


@dataclass(frozen=True, slots=True)
class Needs:
    """What the checks of a block may ask for."""

    declarations: Sequence[Declaration] = ()  # aligned with the subjects; empty where nobody declared anything
    history: History = field(default_factory=History)
    baselines: Mapping[tuple[str, str], Baselines] = field(default_factory=dict)  # by environment id and version
    probed: Mapping[str, Probed] = field(default_factory=dict)  # by key of the trajectory; those whose task was never probed are not there
    payments: Mapping[str, Payments] = field(default_factory=dict)  # by key, or by id where nothing was stored


@dataclass(frozen=True, slots=True)
class Assessment:
    """What the checks said of one subject."""

    outcomes: bytes  # one Outcome a check, in the order of the checks
    findings: tuple[Finding, ...]
    notes: Mapping[int, str]  # position of the check -> the missing need, why it could not tell, or the error

    def outcome(self, at: int) -> Outcome:
        """Of the check at that position."""
        return Outcome(self.outcomes[at])


def run(checks: Sequence[Check], subjects: Sequence[Trajectory], needs: Needs | None = None) -> list[Assessment]:
    """All fast checks over a block of trajectories; one assessment a trajectory, in their order."""
    block, columns = _Block(checks, len(subjects)), _columns(needs or Needs(), subjects)
    whole = _Rows(subjects, columns, slice(0, len(subjects)))
    for at, check in enumerate(checks):
        if not check.late:
            if check.subject is Batch:
                _run_batch(block.column(at), check, whole)
            else:
                _run_each(block.column(at), check, subjects, columns)
    return block.assessments()


def run_groups(checks: Sequence[Check], groups: Sequence[Group], needs: Needs | None = None) -> list[Assessment]:
    """All checks of groups that need no sandbox and no judge; declarations are aligned with the groups, none of which is empty."""
    block, columns = _Block(checks, len(groups)), _columns(needs or Needs(), [group.trajectories[0] for group in groups])
    for at, check in enumerate(checks):
        if check.subject is Group and all(need in columns for need in check.needs):
            _run_each(block.column(at), check, groups, columns)
    return block.assessments()


# --- what checks need ------------------------------------------------------------------------------------------------

_Columns = Mapping[type, Sequence[Any]]  # each need, aligned with the subjects


def _columns(needs: Needs, subjects: Sequence[Trajectory]) -> _Columns:
    if needs.declarations and len(needs.declarations) != len(subjects):
        raise ValueError(f"{len(needs.declarations)} declarations for {len(subjects)} subjects")
    return {
        Declaration: needs.declarations or [_UNDECLARED] * len(subjects),
        Baselines: [needs.baselines.get((subject.environment.id, subject.environment.version), _NO_BASELINES) for subject in subjects],
        History: [needs.history] * len(subjects),
        Probed: [needs.probed.get(subject.key, _NEVER_PROBED) for subject in subjects] if needs.probed else [_NEVER_PROBED] * len(subjects),
        Payments: [needs.payments.get(subject.key or subject.id, _NO_PAYMENTS) for subject in subjects],
    }


def _call(check: Check) -> Callable[..., Iterable[Any]]:
    """The plain function where its own defaults hold: that spares keywords on many calls."""
    if check.parameters == (check.function.__kwdefaults__ or {}):
        return check.function
    return partial(check.function, **check.parameters)


# --- one check over a block ------------------------------------------------------------------------------------------


def _run_each(column: _Column, check: Check, subjects: Sequence[Any], columns: _Columns) -> None:
    function, about_group = _call(check), check.subject is Group
    for row, arguments in enumerate(zip(subjects, *[columns[need] for need in check.needs], strict=True)):
        try:
            for finding in function(*arguments):
                if not column.found(row, finding, None if about_group else arguments[0]):
                    break
        except Exception as error:
            column.raised(row, error)


class _Rows:
    """Some of the subjects as one batch: the same object for every check, so that checks may share what they read of it."""

    def __init__(self, subjects: Sequence[Trajectory], columns: _Columns, rows: slice) -> None:
        self.subjects, self.columns, self.rows = subjects, columns, rows
        self.batch = Batch(subjects[rows])

    def row(self, subject: object) -> int:
        """Which subject of the whole block this is. Raises TypeError where it is none of these rows."""
        row = self._row_of.get(id(subject))
        if row is None:
            raise TypeError("yielded a trajectory that is not in the batch")
        return row

    @cached_property
    def _row_of(self) -> dict[int, int]:
        return {id(subject): self.rows.start + at for at, subject in enumerate(self.batch)}

    def need(self, kind: type) -> Any:
        """What a check of a batch takes for this need."""
        return self.columns[kind][0] if kind is History else self.columns[kind][self.rows]

    def alone(self) -> Iterator[_Rows]:
        """Each row as a batch of its own."""
        return (_Rows(self.subjects, self.columns, slice(row, row + 1)) for row in range(len(self.subjects)))


def _run_batch(column: _Column, check: Check, whole: _Rows) -> None:
    """Once over all; when that fails, over each alone, so that only the culprit's outcome is an error."""
    try:
        _run_rows(column, check, whole)
    except Exception:
        column.forget()
        for one in whole.alone():
            try:
                _run_rows(column, check, one)
            except Exception as error:
                column.raised(one.rows.start, error)


def _run_rows(column: _Column, check: Check, rows: _Rows) -> None:
    for subject, answer in _call(check)(rows.batch, *[rows.need(kind) for kind in check.needs]):
        row = rows.row(subject)
        if isinstance(answer, (NotAssessed, Inconclusive)):
            column.raised(row, answer)
        else:
            column.found(row, answer, subject)


# --- what they said --------------------------------------------------------------------------------------------------


class _Block:
    """The outcomes of some checks on some subjects, gathered check by check and given back subject by subject."""

    def __init__(self, checks: Sequence[Check], rows: int) -> None:
        self._checks, self._rows = checks, rows
        self._columns: dict[int, _Column] = {}

    def column(self, at: int) -> _Column:
        """Where the answers of the check at that position go; it has run from now on."""
        self._columns[at] = _Column(self._checks[at], self._rows)
        return self._columns[at]

    def assessments(self) -> list[Assessment]:
        width = len(self._checks)
        outcomes = bytearray(width * self._rows)  # pending
        findings: list[list[Finding]] = [[] for _ in range(self._rows)]
        notes: list[dict[int, str]] = [{} for _ in range(self._rows)]
        for at, column in self._columns.items():
            outcomes[at::width] = column.outcomes
            for row, found in column.findings.items():
                findings[row] += found
            for row, note in column.notes.items():
                notes[row][at] = note
        return [Assessment(bytes(outcomes[row * width : (row + 1) * width]), tuple(findings[row]), notes[row]) for row in range(self._rows)]


class _Column:
    """One check's answers: clean until it says something else."""

    def __init__(self, check: Check, rows: int) -> None:
        self._check, self._rows = check, rows
        self.forget()

    def forget(self) -> None:
        self.outcomes = bytearray([Outcome.CLEAN]) * self._rows
        self.findings: dict[int, list[Finding]] = {}
        self.notes: dict[int, str] = {}

    def found(self, row: int, finding: Any, transcript: Trajectory | None) -> bool:
        """Keep a finding; False when this subject has had enough of them. Raises TypeError for what is no finding about that transcript."""
        if fault := misfit(finding, transcript):
            raise TypeError(fault)
        kept = self.findings.setdefault(row, [])
        if len(kept) >= FINDINGS:
            self.notes[row] = f"more than {FINDINGS} findings: the rest was not read"
            return False
        kept.append(_signed(finding, self._check))
        self.outcomes[row] = Outcome.FLAGGED
        return True

    def raised(self, row: int, error: Exception) -> None:
        """What was found before a check withheld its judgement stands; what was found before it broke does not."""
        withheld = isinstance(error, (NotAssessed, Inconclusive))
        self.notes[row] = showable(_said(error) if withheld else f"{type(error).__name__}: {_said(error)}", limit=NOTE_CHARS)
        if not withheld:
            self.findings.pop(row, None)
            self.outcomes[row] = Outcome.ERROR
        elif row not in self.findings:
            self.outcomes[row] = Outcome.NOT_ASSESSED if isinstance(error, NotAssessed) else Outcome.INCONCLUSIVE


def _signed(finding: Finding, check: Check) -> Finding:
    """The finding with its finder's name, bounded and safe to show."""
    spans = tuple(_bounded(span) for span in finding.spans) if finding.spans else ()
    message = showable(finding.message, limit=MESSAGE_CHARS)
    return msgspec.structs.replace(finding, message=message, spans=spans, check=check.name, version=check.version, tier=check.tier, cause=check.cause)


def _bounded(span: Span) -> Span:
    return msgspec.structs.replace(span, quote=showable(span.quote, limit=QUOTE_CHARS, lines=True))


def _said(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # a foreign exception's own __str__
        return "(its message cannot be read)"
