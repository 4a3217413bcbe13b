"""The rungs above the reference, for each kind of submission; each says False where the verifier turned out to pay by chance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inspector.environments.protocol import Kind, Text
from inspector.probe import left, malformed, nothing, states, twin, variations, wrong
from inspector.probe.attempts import Attempt, shown
from inspector.probe.exploits import code, state, text
from inspector.probe.judging import Case
from inspector.probe.plans import Plan
from inspector.probe.states import Sight
from inspector.probe.varying import vary
from inspector.probe.words import Family, Outcome


def climb(case: Case, plan: Plan, others: Sequence[str]) -> bool:
    """All that fit the kind of the task. `others` are right answers of other tasks of the environment."""
    if not case.try_all(nothing.attempts(case.trials.task)):
        return False
    match case.trials.task.kind:
        case Kind.CODE:
            return _program(case, plan)
        case Kind.STATE:
            return _state(case, plan)
        case Kind.TEXT:
            return _answer(case, plan, others)
        case _:
            return True


def _solvable(case: Case) -> bool:
    """Its reference is paid, so that a refusal or a payment of something else says something."""
    return case.trials.task.reference is not None and Outcome.UNSOLVABLE not in case.outcomes


def _open_to_all(case: Case) -> bool:
    """Nothing is paid, so that there is nothing left to exploit."""
    return any(hit.attempt.outcome is Outcome.TRIVIALLY_PASSABLE for hit in case.hits)


def _program(case: Case, plan: Plan) -> bool:
    task, reference = case.trials.task, case.trials.task.reference
    if _solvable(case) and isinstance(reference, Text):
        if not (case.try_all(wrong.programs(case.trials, reference, plan.mutants)) and vary(case, variations.attempts(task, reference))):
            return False
        _twin(case, plan)
    return _open_to_all(case) or case.try_all(code.attempts(task))


def _twin(case: Case, plan: Plan) -> None:
    """The contradicted twin: a reference that is paid there too was never compared with what its tests expect."""
    task = case.trials.task
    whole = twin.contradicted(task)
    if whole is None or task.reference is None:
        return
    runs = [case.trials.grade("twin/contradicted_twin", Family.TWIN, task.reference, task=whole)]
    if runs[0].paid:
        runs.append(case.trials.grade("twin/contradicted_twin", Family.TWIN, task.reference, task=whole))
    if len(runs) > 1 and runs[1].paid:
        claim = "The reference is paid also where every expected value was changed: the verifier compares it with none."
        case.hold(Outcome.WEAK_VERIFIER, "twin/contradicted_twin", claim, "\n".join(whole.tests), runs[1].detail)
    elif plan.more:
        _unread(case)


def _unread(case: Case) -> None:
    """Tell which tests alone do not refuse what contradicts them."""
    task = case.trials.task
    for each in twin.one_by_one(task):
        if task.reference is not None and case.trials.grade("twin/one_test", Family.TWIN, task.reference, task=each).paid:
            changed = next(new for new, old in zip(each.tests, task.tests, strict=True) if new != old)
            case.notes.append(f"twin/one_test: the reference is paid also with the test {changed[:200].strip()!r}.")


def _state(case: Case, plan: Plan) -> bool:
    task = case.trials.task
    sight = states.look(case.trials)
    if sight is None:
        case.notes.append("What the reference leaves could not be seen in its box: exploits that need its files, wrong contents and variations were not tried.")
        return True
    if not case.try_all(left.without_work(sight)):
        return False
    if _solvable(case) and not (wrong_contents(case, sight, left.wrong(task, sight)) and vary(case, left.varied(task, sight))):
        return False
    if _solvable(case) and Outcome.WEAK_VERIFIER not in _proven(case) and not wrong_contents(case, sight, left.contradicted(task, sight)):
        return False
    if _open_to_all(case):
        return True
    texts = states.verifier_texts(task)
    if not (case.try_all(state.as_agents(task, sight, texts)) and case.try_all(state.on_programs(task, sight, texts))):
        return False
    return case.try_all(state.on_machine(texts)) if plan.more else True


def _proven(case: Case) -> set[Outcome]:
    return {hit.attempt.outcome for hit in case.hits}


def wrong_contents(case: Case, sight: Sight, tried: Iterable[tuple[Attempt, ...]]) -> bool:
    """Wrong contents count where each of several versions is paid, and the right ones are the same from one run to the next."""
    for versions in tried:
        run, grade = case.trials.graded(versions[0].probe, versions[0].family, versions[0].submission)
        if not run.paid or not states.files_changed(grade.submission_evidence):
            continue
        if not all(case.trials.attempt(each).paid for each in versions[1:]) or not _settled(case, sight):
            continue
        return case.try_all(versions[:1])
    return True


def _settled(case: Case, sight: Sight) -> bool:
    """The reference leaves the same again under another seed."""
    again = states.look(case.trials, seed=case.trials.seed + 7)
    return again is not None and again.made == sight.made


def _answer(case: Case, plan: Plan, others: Sequence[str]) -> bool:
    task, reference = case.trials.task, case.trials.task.reference
    right = reference.text if isinstance(reference, Text) else None
    if _solvable(case) and right is not None and isinstance(reference, Text):
        if not _as_text(case, reference) or not (_wrong_answers(case, right, others) and vary(case, variations.attempts(task, reference))):
            return False
        _falls(case, plan)
    return _open_to_all(case) or case.try_all(text.attempts(task, right if _solvable(case) else None, others))


def _as_text(case: Case, reference: Text) -> bool:
    """A policy answers in words: one of the texts of an answer that is kept as something else has to be paid."""
    texts = list(dict.fromkeys((reference.text, *case.trials.task.answers)))
    if not reference.stored or any(case.trials.grade("reference/as_text", Family.REFERENCE, Text(text)).paid for text in texts):
        return True
    return vary(case, [variations.as_text(texts[0])])


def _wrong_answers(case: Case, right: str, others: Sequence[str]) -> bool:
    """Wrong answers count where all that share what they have in common with the right one are paid, and no single one is: it may be right too."""
    holding, apart = wrong.answers(case.trials.task, right, others)
    paid = [[each for each in group if case.trials.attempt(each).paid] for group in (holding, apart)]
    proven = []
    if len(apart) > 1 and len(paid[1]) == len(apart):
        proven = apart[:1]
    elif apart and len(holding) > 1 and len(paid[0]) == len(holding) and not paid[1]:
        proven = holding[:1]
    elif paid[0] or paid[1]:
        told = [shown(each.submission, 60) for each in (*paid[0], *paid[1])]
        case.notes.append(f"wrong: paid as well, and perhaps right as well: {', '.join(told)}")
    other = next((shown(each.submission) for each in apart), None)
    return case.try_all([*proven, *([wrong.retracted(right, other)] if other is not None and "\n" not in right else [])])


def _falls(case: Case, plan: Plan) -> None:
    plain, hostile = malformed.falls(case.trials, hostile=plan.more)
    if plain:
        name, given, run = plain[0]
        claim = f"The verifier falls over {len(plain)} of {len(malformed.PLAIN)} plain wrong answers in place of refusing them."
        case.hold(
            Outcome.WEAK_VERIFIER,
            f"malformed/{name}",
            claim,
            "(no answer)" if given.absent else given.text,
            run.detail,
            [f"malformed/{name}" for name, *_ in plain[1:]],
        )
    if hostile:
        case.notes.append(f"malformed: the verifier ends without a reward at {', '.join(hostile)}.")
