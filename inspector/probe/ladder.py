"""Climbs the ladder on one task: its reference first, as all else is measured by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inspector.environments.protocol import Kind, Submission, TaskUnderTest, Text, Trouble
from inspector.probe import causes, networks, rungs, sequential
from inspector.probe.attempts import shown
from inspector.probe.judging import Case
from inspector.probe.plans import Plan
from inspector.probe.trials import CONFIRMED, mixed
from inspector.probe.words import Family, Outcome, Run

REFUSALS = 6  # of a reference before it is called refused: a verifier that tosses a coin says no twice in a quarter of all cases
NO_WORD_OF_THE_VERIFIER = (Trouble.NOT_BUILT, Trouble.REFUSED, Trouble.BROKEN)
CLOSE = 0.5  # of what success earns: a reward from here on that is the same for all submissions is no refusal


def climb(case: Case, plan: Plan, others: Sequence[str]) -> None:
    """Fill a case. `others` are right answers of other tasks of the same environment."""
    reference = case.trials.task.reference
    if reference is None:
        case.tell(Outcome.NOT_ASSESSED, "No reference: whether it can be solved is not assessed, nor what its verifier refuses.")
    if reference is None or of_reference(case, reference, plan):
        rungs.climb(case, plan, others)
        _told_apart(case)


def of_reference(case: Case, reference: Submission, plan: Plan) -> bool:
    """Grade the reference until it is told whether it is paid. False where nothing more can be said of the task."""
    runs = [_graded(case, reference, 0)]
    if runs[0].trouble not in NO_WORD_OF_THE_VERIFIER:
        runs.append(_graded(case, reference, 1))
    last = runs[-1]
    if last.trouble in NO_WORD_OF_THE_VERIFIER:
        case.tell(causes.outcome_of(last.trouble), f"The reference has no grade here: {last.trouble}: {causes.last_words(last)}")
        return False
    return _steady(case, reference, runs, plan) if any(run.paid for run in runs) else _refused(case, reference, runs)


def _graded(case: Case, reference: Submission, number: int) -> Run:
    return case.trials.grade("reference", Family.REFERENCE, reference, seed=case.trials.seed + number)


def _refused(case: Case, reference: Submission, runs: list[Run]) -> bool:
    """A reference that was not paid twice: by the verifier's word, by its end that never came, or because of this machine."""
    if case.trials.task.network and (lack := networks.lacking(case, reference)) is not None:
        case.tell(Outcome.NOT_REPRODUCED, lack)
        return False
    if (lack := causes.our_fault(runs[-1])) is not None:
        case.tell(Outcome.NOT_REPRODUCED, f"The reference fails as this machine lacks something: {lack}")
        return False
    while len(runs) < REFUSALS and not any(run.paid or run.trouble is Trouble.TIMED_OUT for run in runs):
        runs.append(_graded(case, reference, len(runs)))
    if any(run.paid for run in runs):
        case.by_chance("reference", runs)
        return False
    if isinstance(reference, Text) and (text := _paid_as_text(case, reference)) is not None:
        _stored_alone(case, reference, text, runs[-1])
        return True
    telling = next((run for run in runs if run.trouble is Trouble.TIMED_OUT), runs[-1])
    said, claim = _refusal(telling, case.trials.task, len(runs))
    case.hold(Outcome.UNSOLVABLE, "reference", claim, f"{said}\n{shown(reference)}", telling.detail)
    case.probabilities[Outcome.UNSOLVABLE] = 1 - sequential.posterior(0, len(runs)).mean
    return case.trials.task.kind is Kind.CODE or not any(run.trouble is Trouble.TIMED_OUT for run in runs)


def _paid_as_text(case: Case, reference: Text) -> Text | None:
    """Of an answer that is stored as something else than text: a text of it that is paid each time."""
    if not reference.stored:
        return None
    for text in map(Text, dict.fromkeys((reference.text, *case.trials.task.answers))):
        if all(case.trials.grade("reference/as_text", Family.REFERENCE, text).paid for _ in range(CONFIRMED)):
            return text
    return None


def _stored_alone(case: Case, stored: Text, text: Text, refused: Run) -> None:
    """What the task keeps as its answer is refused, and a text of it is paid: from here on that text is the reference."""
    claim = "The answer is refused in the form in which the task keeps it; as a text it is paid."
    case.hold(Outcome.FALSE_REJECTING, "reference", claim, f"{shown(stored)}\npaid as a text: {shown(text, 200)}", refused.detail)
    case.trials.task = replace(case.trials.task, reference=text)


def _refusal(run: Run, task: TaskUnderTest, times: int) -> tuple[str, str]:
    if run.trouble is Trouble.TIMED_OUT:
        return "timeout", f"Reference and verifier come to no end, {times} times (timeout)."
    if run.reward is None:
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
    if case.trials.task.network:
        case.notes.append(networks.without(case, reference))
    return True


def _told_apart(case: Case) -> None:
    """A refused reference that earns what all else earns, and no little, was not refused: nothing can be told by such rewards."""
    rewards = {run.reward for run in case.trials.runs if run.reward is not None}
    task = case.trials.task
    if Outcome.UNSOLVABLE in case.outcomes and len(rewards) == 1 and CLOSE * task.paid_at <= min(rewards) < task.paid_at:
        case.withdraw(Outcome.UNSOLVABLE)
        case.tell(Outcome.INCONCLUSIVE, f"The reference cannot be told from doing nothing: all is paid {min(rewards):g}, where success is {task.paid_at:g}.")
