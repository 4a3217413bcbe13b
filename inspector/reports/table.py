"""A report for people at a terminal: how many tasks have which outcome, and the proof for each that is not sound."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.probe.words import EnvironmentReport, Hint, TaskReport
from inspector.reports.meanings import MEANINGS
from inspector.reports.probed import Ground, Probed, notes_of, outcomes_of
from inspector.showable import showable

COLUMNS = ("outcome", "tasks", "what it means")
NAME = 200  # characters
QUOTED = 12  # lines of foreign text
WIDE = 160
CHARACTERS = QUOTED * WIDE


def heading(environment: EnvironmentReport) -> str:
    """One line: which version, and what the probe cost."""
    runs = sum(len(task.runs) for task in environment.tasks)
    name = showable(environment.environment, limit=NAME)
    costs = f"{counted(runs, 'run')}, {environment.cpu_s:.1f} s of CPU, {environment.wall_s:.1f} s"
    return f"{name}  version {environment.version[:12]}  verifier {environment.verifier_digest[:12]}  {counted(len(environment.tasks), 'task')}, {costs}"


def summary(environment: EnvironmentReport) -> list[tuple[str, int, str]]:
    """Rows of COLUMNS, worst first."""
    counts = environment.counts()
    return [(outcome.value, counts[outcome], meaning) for outcome, meaning in MEANINGS.items() if outcome in counts]


def proofs(probed: Probed, environment: EnvironmentReport, task: TaskReport) -> Iterator[str]:
    """Lines; foreign text stands behind a bar, so that it cannot pass for ours."""
    yield f"{showable(task.task, limit=NAME)}: {', '.join(outcomes_of(task))}"
    for ground in probed.grounds(environment, task):
        yield from _proof(ground)
    for note in notes_of(task):
        yield from _quoted("note", note)
    for hint in task.hints:
        yield f"  hint  {told(hint)}"


def _proof(ground: Ground) -> Iterator[str]:
    evidence = ground.evidence
    by = f", by {showable(evidence.probe, limit=NAME)}" if evidence.probe else ""
    yield f"  {evidence.outcome}{by}{' (known)' if ground.known else ''}: {showable(evidence.claim, limit=CHARACTERS)}"
    yield from _quoted("submitted", evidence.proof)
    yield from _quoted("came back", evidence.detail)
    if evidence.also:
        yield f"    the same cause: {showable(', '.join(evidence.also), limit=CHARACTERS)}"
    if evidence.reproduce:
        yield f"    reproduce: {showable(evidence.reproduce)}"


def _quoted(what: str, foreign: str) -> Iterator[str]:
    """The beginning of it; a cut says how much was left out."""
    if not foreign.strip():
        return
    lines = showable(foreign.strip("\n"), limit=CHARACTERS, lines=True).expandtabs(4).split("\n")
    yield f"    {what}"
    yield from (f"    │ {line}" for line in lines[:QUOTED])
    if len(lines) > QUOTED:
        yield f"    … {counted(len(lines) - QUOTED, 'more line')}"


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
