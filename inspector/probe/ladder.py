"""Climbs the ladder on one task: reference, nothing, wrong, variations, exploits, twin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from inspector.environments.protocol import Kind, Submission, TaskUnderTest, Text, Trouble
from inspector.probe import causes, nothing, sequential, twin, variations, wrong
from inspector.probe.attempts import Attempt, shown
from inspector.probe.exploits import code
from inspector.probe.judging import Case
from inspector.probe.trials import CONFIRMED, mixed
from inspector.probe.words import Family, Outcome, Run

REFUSALS = 6  # of a reference before it is called refused: a verifier that tosses a coin says no twice in a quarter of all cases


class Depth(StrEnum):
    """How much is run."""

    QUICK = "quick"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run of each."""

    references: int
    mutants: int
    twins: bool  # one test at a time

    @classmethod
    def of(cls, depth: Depth) -> Plan:
        """The plan of a depth."""
        if depth is Depth.FULL:
            return cls(sequential.FLAKE_RUNS, 12, True)
        return cls(sequential.RUNS_AT_ONCE, 5, False)


def climb(case: Case, plan: Plan, others: Sequence[str]) -> None:
    """Fill a case. `others` are right answers of other tasks of the same environment."""
    task = case.trials.task
    if task.reference is None:
        case.tell(Outcome.NOT_ASSESSED, "No reference: whether it can be solved is not assessed, nor what a verifier refuses.")
    elif not _reference(case, task.reference, plan):
        return
    if _nothing(case):
        _attempts(case, task, plan, others)


def _reference(case: Case, reference: Submission, plan: Plan) -> bool:
    """Grade the reference until it is told whether it is paid. False where nothing more can be said of the task."""
    first = _graded(case, reference, 0)
    if first.trouble in (Trouble.NOT_BUILT, Trouble.REFUSED, Trouble.BROKEN):
        case.tell(causes.outcome_of(first.trouble), f"The reference has no grade here: {first.trouble}: {causes.last_words(first)}")
        return False
    runs = [first, _graded(case, reference, 1)]
    if not any(run.paid for run in runs):
        return _refused(case, reference, runs)
    return _steady(case, reference, runs, plan)


def _graded(case: Case, reference: Submission, number: int) -> Run:
    return case.trials.grade("reference", Family.REFERENCE, reference, seed=case.trials.seed + number)


def _refused(case: Case, reference: Submission, runs: Sequence[Run]) -> bool:
    """A reference that was not paid twice: by the verifier's word, by its end that never came, or because of this machine."""
    last = runs[-1]
    if last.trouble in (Trouble.NOT_BUILT, Trouble.REFUSED, Trouble.BROKEN):
        case.tell(causes.outcome_of(last.trouble), f"The reference has no second grade here: {last.trouble}: {causes.last_words(last)}")
        return False
    if (lack := causes.our_fault(last)) is not None:
        case.tell(Outcome.NOT_REPRODUCED, f"The reference fails as this machine lacks something: {lack}")
        return False
    while len(runs) < REFUSALS and not any(run.paid or run.trouble is Trouble.TIMED_OUT for run in runs):
        runs = [*runs, _graded(case, reference, len(runs))]
    if any(run.paid for run in runs):
        case.by_chance("reference", runs)
        return False
    said, claim = _refusal(last, case.trials.task, len(runs))
    case.hold(Outcome.UNSOLVABLE, "reference", claim, f"{said}\n{shown(reference)}", last.detail)
    case.probabilities[Outcome.UNSOLVABLE] = 1 - sequential.posterior(0, len(runs)).mean
    return not all(run.trouble is Trouble.TIMED_OUT for run in runs) or case.trials.task.kind is Kind.CODE


def _refusal(run: Run, task: TaskUnderTest, times: int) -> tuple[str, str]:
    if run.trouble is Trouble.TIMED_OUT:
        return "timeout", f"Reference and verifier come to no end, {times} times (timeout)."
    if run.trouble is Trouble.MALFORMED:
        return "no reward", f"The verifier gives the reference no reward, {times} times."
    return f"reward {run.reward:g}, success is {task.paid_at:g}", f"The verifier refuses the reference, {times} times (reward {run.reward:g})."


def _steady(case: Case, reference: Submission, runs: list[Run], plan: Plan) -> bool:
    """Grade a paid reference again, until it is steady or is not."""
    test = sequential.flake_test()
    for run in runs:
        test.add(run.paid or run.trouble is not None)
    while len(runs) < plan.references and test.side == 0:
        runs.append(_graded(case, reference, len(runs)))
        test.add(runs[-1].paid or runs[-1].trouble is not None)
    ungraded = [run for run in runs if run.trouble is not None]
    if ungraded:
        case.notes.append(f"{len(ungraded)} of {len(runs)} runs of the reference have no grade: {ungraded[0].trouble}: {causes.last_words(ungraded[0])}")
    if mixed(runs):
        case.by_chance("reference", runs)
        return False
    return True


def _nothing(case: Case) -> bool:
    """The floor: what no work is paid. False where the verifier pays by chance."""
    return case.try_all(list(nothing.attempts(case.trials.task)))


def _attempts(case: Case, task: TaskUnderTest, plan: Plan, others: Sequence[str]) -> None:
    for step in (_wrong, _variations, _exploits, _twins):
        if not step(case, task, plan, others):
            return


def _wrong(case: Case, task: TaskUnderTest, plan: Plan, others: Sequence[str]) -> bool:
    if not _solvable(case) or not isinstance(task.reference, Text):
        return True
    return case.try_all(list(wrong.programs(case.trials, task.reference, plan.mutants))) if task.kind is Kind.CODE else True


def _solvable(case: Case) -> bool:
    """Its reference is paid, so that a refusal or a payment of something else says something."""
    return case.trials.task.reference is not None and Outcome.UNSOLVABLE not in case.outcomes


def _variations(case: Case, task: TaskUnderTest, plan: Plan, others: Sequence[str]) -> bool:
    if not _solvable(case) or not isinstance(task.reference, Text):
        return True
    return vary(case, list(variations.attempts(task, task.reference)))


def vary(case: Case, attempts: Sequence[Attempt]) -> bool:
    """Grade harmless variations; one that is refused each time, while the reference is paid again, is a finding."""
    for attempt in attempts:
        runs = [case.trials.attempt(attempt)]
        if runs[0].paid or runs[0].trouble is not None:
            continue
        runs += [case.trials.attempt(attempt) for _ in range(CONFIRMED - 1)]
        again = _graded(case, case.trials.task.reference or attempt.submission, 0)
        if mixed(runs) or not again.paid:
            case.by_chance(attempt.probe, runs if mixed(runs) else [again, *_paid_before(case)])
            return False
        if any(run.trouble is not None for run in runs):
            continue
        proof = f"{shown(attempt.submission)}\nrefused {len(runs)} of {len(runs)} times, the reference paid in between"
        if attempt.noted:
            case.notes.append(f"{attempt.probe}: {attempt.claim} (told only, as the task may mean it so)")
        else:
            case.hold(attempt.outcome, attempt.probe, attempt.claim, proof, runs[0].detail)
    return True


def _paid_before(case: Case) -> list[Run]:
    return [run for run in case.trials.runs if run.family is Family.REFERENCE and run.paid]


def _exploits(case: Case, task: TaskUnderTest, plan: Plan, others: Sequence[str]) -> bool:
    if any(hit.attempt.outcome is Outcome.TRIVIALLY_PASSABLE for hit in case.hits):
        return True  # where nothing is paid there is nothing to exploit
    return case.try_all(list(code.attempts(task))) if task.kind is Kind.CODE else True


def _twins(case: Case, task: TaskUnderTest, plan: Plan, others: Sequence[str]) -> bool:
    """The contradicted twin: a reference that is paid there too was never compared with what its tests expect."""
    if not _solvable(case) or task.reference is None or task.kind is not Kind.CODE:
        return True
    whole = twin.contradicted(task)
    if whole is None:
        return True
    run = case.trials.grade("twin/contradicted_twin", Family.TWIN, task.reference, task=whole)
    if run.paid and case.trials.grade("twin/contradicted_twin", Family.TWIN, task.reference, task=whole).paid:
        claim = "The reference is paid also where every expected value was changed: the verifier compares it with none."
        case.hold(Outcome.WEAK_VERIFIER, "twin/contradicted_twin", claim, "\n".join(whole.tests), run.detail)
    elif plan.twins:
        _unread(case, task)
    return True


def _unread(case: Case, task: TaskUnderTest) -> None:
    """Tell which tests alone do not refuse what contradicts them."""
    for each in twin.one_by_one(task):
        if task.reference is not None and case.trials.grade("twin/one_test", Family.TWIN, task.reference, task=each).paid:
            changed = next(new for new, old in zip(each.tests, task.tests, strict=True) if new != old)
            case.notes.append(f"twin/one_test: the reference is paid also with the test {changed[:200].strip()!r}.")
