"""A report for people at a terminal: how many tasks have which outcome, and the proof for each that is not sound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inspector.probe.words import EnvironmentReport, Hint, Outcome, TaskReport
from inspector.reports.meanings import MEANINGS
from inspector.reports.probed import Ground, Probed, causes_of, evidence_of, notes_of, outcomes_of
from inspector.showable import showable

COLUMNS = ("outcome", "tasks", "what it means")
CAUSES = ("outcome", "tasks", "by", "first")
NAME = 200  # characters
HEAD, TAIL = 8, 6  # lines of foreign text
WIDE = 240  # characters of one
CHARACTERS = 2_000


def heading(environment: EnvironmentReport) -> str:
    """One line: which version, and what the probe cost."""
    runs = sum(len(task.runs) for task in environment.tasks)
    name = _named(environment.environment)
    costs = f"{counted(runs, 'run')}, {environment.cpu_s:.1f} s of CPU, {environment.wall_s:.1f} s"
    return f"{name}  version {environment.version[:12]}  verifier {environment.verifier_digest[:12]}  {counted(len(environment.tasks), 'task')}, {costs}"


def summary(environment: EnvironmentReport) -> list[tuple[str, int, str]]:
    """Rows of COLUMNS, worst first."""
    counts = environment.counts()
    return [(outcome.value, counts[outcome], meaning) for outcome, meaning in MEANINGS.items() if outcome in counts]


def causes(environment: EnvironmentReport) -> list[tuple[str, int, str, str]]:
    """Rows of CAUSES."""
    return [(one.outcome.value, one.tasks, _named(one.probe), showable(one.claim, limit=WIDE)) for one in causes_of(environment)]


def alike(tasks: Sequence[TaskReport]) -> str:
    """One line for tasks with the same causes as some whose proofs stand above."""
    causes = ", ".join(f"{one.outcome} by {_named(one.probe)}" if one.probe else one.outcome.value for one in evidence_of(tasks[0]))
    names = showable(", ".join(task.task for task in tasks), limit=CHARACTERS)
    return f"{counted(len(tasks), 'more task')} of the same causes ({causes}): {names}"


def proofs(probed: Probed, environment: EnvironmentReport, task: TaskReport) -> Iterator[str]:
    """Lines; foreign text stands behind a bar, so that it cannot pass for ours."""
    yield f"{_named(task.task)}: {', '.join(_likely(task, outcome) for outcome in outcomes_of(task))}"
    for ground in probed.grounds(environment, task):
        yield from _proof(ground)
    for note in notes_of(task):
        yield f"  note: {showable(note, limit=CHARACTERS)}"
    for hint in task.hints:
        yield f"  hint: {told(hint)}"


def _likely(task: TaskReport, outcome: Outcome) -> str:
    likely = task.probabilities.get(outcome)
    return outcome.value if likely is None else f"{outcome} (p {likely:.2f})"


def _proof(ground: Ground) -> Iterator[str]:
    evidence = ground.evidence
    by = f", by {_named(evidence.probe)}" if evidence.probe else ""
    yield f"  {evidence.outcome}{by}{' (known)' if ground.known else ''}: {showable(evidence.claim, limit=CHARACTERS)}"
    yield from _quoted("submitted", evidence.proof)
    yield from _quoted("came back", evidence.detail)
    if evidence.also:
        yield f"    the same cause: {showable(', '.join(evidence.also), limit=CHARACTERS)}"
    if evidence.reproduce:
        yield f"    reproduce: {showable(evidence.reproduce)}"


def _named(name: str) -> str:
    return showable(name, limit=NAME)


def _quoted(what: str, foreign: str) -> Iterator[str]:
    """Its beginning and its end; a cut says how much was left out."""
    if not foreign.strip():
        return
    lines = foreign.strip("\n").split("\n")
    left_out = len(lines) - HEAD - TAIL
    yield f"    {what}"
    yield from _barred(lines if left_out <= 1 else lines[:HEAD])
    if left_out > 1:
        yield f"    … {counted(left_out, 'line')} left out"
        yield from _barred(lines[-TAIL:])


def _barred(lines: Sequence[str]) -> Iterator[str]:
    return (f"    │ {showable(line.expandtabs(4), limit=WIDE)}" for line in lines)


def told(hint: Hint) -> str:
    """What the lint saw, with the verdict of the probe that tests it."""
    place = f"{hint.path}:{hint.line}" if hint.line else hint.path
    return showable(f"{place}  {hint.rule}: {hint.message} ({verdict(hint)})", limit=CHARACTERS)


def verdict(hint: Hint) -> str:
    """What the probe that tests it said."""
    if hint.confirmed is None:
        return f"to be tested by {hint.tested_by}, which did not run here" if hint.tested_by else "no probe tests this"
    return f"{'confirmed' if hint.confirmed else 'not confirmed'} by {hint.tested_by}"


def counted(number: int, noun: str) -> str:
    """As `1 task`, `2 tasks`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
