"""Grades harmless variations of a reference: one that is refused each time, while the reference is paid, is a finding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inspector.environments.protocol import Trouble
from inspector.probe.attempts import Attempt, shown
from inspector.probe.judging import Case
from inspector.probe.trials import CONFIRMED, mixed
from inspector.probe.words import Family, Run

REFUSED = (None, Trouble.MALFORMED)  # a verifier that falls over a right answer does not pay it either


def vary(case: Case, attempts: Iterable[Attempt]) -> bool:
    """False where the verifier turned out to pay by chance."""
    for attempt in attempts:
        first = case.trials.attempt(attempt)
        if not first.paid and first.trouble in REFUSED and not _refused(case, attempt, first):
            return False
    return True


def _refused(case: Case, attempt: Attempt, first: Run) -> bool:
    runs = [first, *(case.trials.attempt(attempt) for _ in range(CONFIRMED - 1))]
    references = [*_references(case), _reference(case, attempt)]
    for each in (runs, references):
        if mixed(each):
            case.by_chance(attempt.probe if each is runs else "reference", each)
            return False
    if any(run.trouble not in REFUSED for run in runs) or not references[-1].paid:
        return True
    if attempt.noted:
        case.notes.append(f"{attempt.probe}: {attempt.claim} (told only, as the task may mean it so)")
    else:
        proof = f"{shown(attempt.submission)}\nrefused {len(runs)} of {len(runs)} times, the reference paid in between"
        case.hold(attempt.outcome, attempt.probe, attempt.claim, proof, first.detail)
    return True


def _reference(case: Case, attempt: Attempt) -> Run:
    return case.trials.grade("reference", Family.REFERENCE, case.trials.task.reference or attempt.submission)


def _references(case: Case) -> Sequence[Run]:
    return [run for run in case.trials.runs if run.probe == "reference"]
