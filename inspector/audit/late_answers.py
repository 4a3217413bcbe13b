"""What late checks said of a group, told in the outcomes and findings of each of its members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlmodel import Session

from inspector.audit.plans import Plan
from inspector.audit.subjects import Audited
from inspector.engine import Assessment
from inspector.store import verdicts
from inspector.verdict import Finding, Outcome


class Answer(NamedTuple):
    """Of one late check."""

    outcome: int
    note: str | None
    findings: tuple[Finding, ...]


Answers = Mapping[str, Answer]  # by the check's `identity`


def answered(plan: Plan, assessment: Assessment, answers: Answers) -> Assessment:
    """The assessment with these answers in the place of what its late checks said before."""
    given = {at: answers[identity] for at, check in plan.late.items() if (identity := check.identity) in answers}
    names = {(plan.selected[at].check, plan.selected[at].version) for at in given}
    outcomes, notes = bytearray(assessment.outcomes), {at: note for at, note in assessment.notes.items() if at not in given}
    findings = [f for f in assessment.findings if (f.check, f.version) not in names]
    for at, answer in given.items():
        outcomes[at] = answer.outcome
        findings += answer.findings
        if answer.note is not None:
            notes[at] = answer.note
    return Assessment(bytes(outcomes), tuple(findings), notes)


def ended(plan: Plan, assessment: Assessment) -> Assessment:
    """The assessment with nothing left that waits for a check that cannot be run here: nobody else is going to be asked."""
    waiting = {at: note for at, note in plan.gone.items() if assessment.outcomes[at] == Outcome.PENDING}
    if not waiting:
        return assessment
    outcomes = bytearray(assessment.outcomes)
    for at in waiting:
        outcomes[at] = Outcome.NOT_ASSESSED
    return Assessment(bytes(outcomes), assessment.findings, {**assessment.notes, **waiting})


def carried(session: Session, audited: Sequence[Audited], plans: Mapping[tuple[int, int], Plan]) -> list[Audited]:
    """What late checks said at an earlier audit holds until they have said otherwise."""
    mine = [a.subject.key for a in audited if plans[a.subject.project, a.subject.selection].late]
    said = verdicts.assessed(session, mine) if mine else {}
    return [_carried(a, plans[a.subject.project, a.subject.selection], said[a.subject.key]) if a.subject.key in said else a for a in audited]


def _carried(audited: Audited, plan: Plan, said: verdicts.Assessed) -> Audited:
    answers = {}
    for at, check in plan.late.items():
        if at < len(said.outcomes) and said.outcomes[at] != Outcome.PENDING and audited.assessment.outcomes[at] == Outcome.PENDING:
            found = tuple(f for f in said.findings if (f.check, f.version) == (check.name, check.version))
            answers[check.identity] = Answer(said.outcomes[at], said.notes.get(at), found)
    return audited._replace(assessment=answered(plan, audited.assessment, answers)) if answers else audited
