"""`inspector probe`: what of an environment is sound, in this process, with no server."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from inspector.cli import DONE, FAILED, INCONCLUSIVE, UNREADABLE, rolling
from inspector.cli.inputs import Json
from inspector.cli.output import Step, json_line, progress, say, table, warn
from inspector.cli.under_test import Asked, UnderTest, opened
from inspector.probe import Depth, probe
from inspector.probe.words import EnvironmentReport, Outcome, TaskReport
from inspector.reports.baseline import baseline_text, read_baseline
from inspector.reports.html import html
from inspector.reports.junit import junit
from inspector.reports.lines import lines
from inspector.reports.meanings import DEFECTS
from inspector.reports.probed import Probed, evidence_of, worst_first
from inspector.reports.sarif import sarif
from inspector.reports.table import CAUSES, COLUMNS, alike, causes, heading, proofs, summary, told
from inspector.showable import showable

PROOFS = 3  # of one cause that are printed; --json and --html have no limit
HINTS = 20  # of tasks that are sound
NAME = 60  # characters beside a bar
AT_ONCE = max(1, (os.cpu_count() or 1) // 2)  # leaves room, or limits on time would be reached for want of it
WORDS = ", ".join(outcome.value for outcome in Outcome)


def _there(path: Path | None) -> Path | None:
    """Told before a long probe, not after it."""
    if path is not None and (path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK)):
        raise typer.BadParameter(f"{str(path)!r} cannot be written")
    return path


def _file(name: str, what: str) -> Any:
    return typer.Option(name, metavar="FILE", help=f"Write {what}.", callback=_there)


Source = Annotated[str, typer.Argument(metavar="PATH", help="A Harbor folder or a folder of them, a file of rows, or the name of an environment.")]
Dataset = Annotated[Path | None, typer.Option("--dataset", metavar="FILE", help="The rows of a reward function or of an HTTP verifier.")]
Sarif = Annotated[Path | None, _file("--sarif", "SARIF 2.1.0, for code scanning")]
Junit = Annotated[Path | None, _file("--junit", "JUnit XML, for CI")]
Html = Annotated[Path | None, _file("--html", "a page that needs nothing else")]
Known = Annotated[Path | None, typer.Option("--baseline", metavar="FILE", help="What was known before: only what is new fails.")]
NewlyKnown = Annotated[Path | None, _file("--write-baseline", "what is known now, for --baseline")]
FailOn = Annotated[str, typer.Option("--fail-on", metavar="OUTCOMES", help=f"Exit 1 (4 for inconclusive alone) on any of these: {WORDS}.")]
HowDeep = Annotated[Depth, typer.Option("--depth", help="How much is tried, and how often.")]
Tasks = Annotated[list[str] | None, typer.Option("--task", metavar="ID", help="Only this task; repeatable.")]
Seed = Annotated[int, typer.Option("--seed", help="Of all that is drawn: the same seed tries the same.")]
Parallel = Annotated[int, typer.Option("--parallel", min=1, max=256, help="Tasks at once.")]


def probe_environment(
    path: Source,
    dataset: Dataset = None,
    json: Json = False,
    sarif_file: Sarif = None,
    junit_file: Junit = None,
    html_file: Html = None,
    baseline: Known = None,
    write_baseline: NewlyKnown = None,
    fail_on: FailOn = "",
    depth: HowDeep = Depth.QUICK,
    task: Tasks = None,
    seed: Seed = 0,
    parallel: Parallel = AT_ONCE,
    agent: rolling.Url = "",
    agent_model: rolling.Model = "",
    agent_runs: rolling.Episodes = 8,
    agent_turns: rolling.Turns = 40,
    agent_trajectories: rolling.Written = None,
) -> None:
    """Try the tasks of an environment: can they be solved, does doing nothing or cheating pay, is right told from wrong.

    Everything foreign runs in a sandbox. Exit codes: 0 done; 1 what --fail-on names was found; 2 wrong usage; 3 something
    could not be read (the rest was probed); 4 --fail-on inconclusive, and a task could not be told.
    """
    failing = _failing(fail_on)
    known = read_baseline(baseline) if baseline else None
    asked = Asked(path, dataset, depth, seed, task or [])
    under_test = opened(asked)
    with rolling.rolling(agent, agent_model, agent_runs, agent_turns, agent_trajectories) as episodes, progress() as step:
        reports = [_probed(one, asked, parallel, step) for one in under_test]
        if episodes is not None:
            reports = [episodes.added(one.environment, report, seed, step) for one, report in zip(under_test, reports, strict=True)]
    files = {place: file for one in under_test for place, file in one.files(asked).items()}
    probed = Probed(reports, datetime.now(UTC), asked.whole_command(), known, failing or DEFECTS, files)
    _print(probed, json=json)
    _write(probed, [(sarif_file, sarif), (junit_file, junit), (html_file, html), (write_baseline, _baseline)])
    raise typer.Exit(_code(probed, failing, _tell_unread(under_test)))


def _failing(text: str) -> frozenset[Outcome]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if unknown := [word for word in words if word not in set(Outcome)]:
        raise typer.BadParameter(f"{unknown[0]!r} is no outcome; these are: {WORDS}", param_hint="--fail-on")
    return frozenset(map(Outcome, words))


def _probed(one: UnderTest, asked: Asked, parallel: int, step: Step) -> EnvironmentReport:
    name = showable(one.environment.id, limit=NAME)

    def tell(_report: TaskReport, done: int, total: int) -> None:
        step(name, done, total)

    hints = one.hints(step)
    step(name, 0, len(one.tasks))
    only = [task.id for task in one.tasks]
    return probe(one.environment, depth=asked.depth, seed=asked.seed, hints=hints, tell=tell, parallel=parallel, only=only, command=asked.command())


def _tell_unread(under_test: list[UnderTest]) -> bool:
    """Whether there was any."""
    unread = [task for one in under_test for task in one.tasks if not task.read]
    for task in unread:
        warn(f"not read: {task.id}: {'; '.join(task.notes)}")
    return bool(unread)


def _code(probed: Probed, failing: frozenset[Outcome], unread: bool) -> int:
    """A probe of half the input is no probe, so that goes first."""
    if unread:
        return UNREADABLE
    found = probed.new() & failing
    if found - {Outcome.INCONCLUSIVE}:
        return FAILED
    return INCONCLUSIVE if found else DONE


# --- printing --------------------------------------------------------------------------------------------------------


def _print(probed: Probed, *, json: bool) -> None:
    if json:
        for line in lines(probed):
            json_line(line)
        return
    for environment in probed.environments:
        _print_environment(probed, environment)
    if probed.baseline:
        known = [ground.known for *_, ground in probed.all_grounds()]
        say(f"{known.count(False)} new, {known.count(True)} known")


def _print_environment(probed: Probed, environment: EnvironmentReport) -> None:
    say(heading(environment))
    for note in environment.notes:
        say(f"note: {note}")
    say("")
    table(COLUMNS, summary(environment))
    say("")
    if found := causes(environment):
        table(CAUSES, found)
        say("")
    _print_proofs(probed, environment)
    _print_hints(environment)


def _print_proofs(probed: Probed, environment: EnvironmentReport) -> None:
    """Of each cause a few; the other tasks that it holds of are named."""
    proven: Counter[tuple[Outcome, str]] = Counter()
    others: dict[tuple[tuple[Outcome, str], ...], list[TaskReport]] = {}
    for task in worst_first(environment):
        causes_here = tuple((one.outcome, one.probe) for one in evidence_of(task))
        if min((proven[cause] for cause in causes_here), default=0) >= PROOFS:
            others.setdefault(causes_here, []).append(task)
            continue
        proven.update(causes_here)
        for line in [*proofs(probed, environment, task), ""]:
            say(line)
    for tasks in others.values():
        say(alike(tasks))
        say("")


def _print_hints(environment: EnvironmentReport) -> None:
    """Those that no proof above stands beside."""
    sound = [f"{task.task}  {told(hint)}" for task in environment.tasks if Outcome.SOUND in task.outcomes for hint in task.hints]
    hints = [*map(told, environment.hints), *sound]
    if not hints:
        return
    say("hints of the lint, beside what is sound")
    for hint in hints[:HINTS]:
        say(f"  {hint}")
    if len(hints) > HINTS:
        say(f"  and {len(hints) - HINTS} more; --json and --html have them all")
    say("")


# --- files -----------------------------------------------------------------------------------------------------------


def _baseline(probed: Probed) -> str:
    return baseline_text(probed.known())


def _write(probed: Probed, forms: Sequence[tuple[Path | None, Callable[[Probed], str]]]) -> None:
    for path, form in forms:
        if path is not None:
            _put(path, form(probed))


def _put(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"{str(path)!r} cannot be written: {error.strerror}") from error
