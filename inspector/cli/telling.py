"""What `inspector probe` prints for people and programs, and the files that it writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import typer

from inspector.cli.output import json_line, say, table, warn
from inspector.cli.under_test import UnderTest
from inspector.probe.words import EnvironmentReport, Outcome, TaskReport
from inspector.reports.baseline import baseline_text
from inspector.reports.html import html
from inspector.reports.junit import junit
from inspector.reports.lines import lines
from inspector.reports.probed import Probed, evidence_of, worst_first
from inspector.reports.sarif import sarif
from inspector.reports.table import CAUSES, COLUMNS, alike, causes, heading, proofs, summary, told

PROOFS = 3  # of one cause that are printed; --json and --html have no limit
HINTS = 20  # of tasks that are sound


def print_probed(probed: Probed, *, json: bool) -> None:
    """A table and the proofs, or a line of JSON for each task; the last line says where it was interrupted."""
    if json:
        for line in lines(probed):
            json_line(line)
        return
    for environment in probed.environments:
        _print_environment(probed, environment)
    if probed.baseline:
        known = [ground.known for *_, ground in probed.all_grounds()]
        say(f"{known.count(False)} new, {known.count(True)} known")
    if probed.interruption:
        say(probed.interruption.told())


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


def tell_unread(under_test: Sequence[UnderTest]) -> bool:
    """Whether there was any."""
    unread = [task for one in under_test for task in one.tasks if not task.read]
    for task in unread:
        warn(f"not read: {task.id}: {'; '.join(task.notes)}")
    return bool(unread)


# --- files -----------------------------------------------------------------------------------------------------------


class Files(NamedTuple):
    """Where each form goes; None where it was not asked for."""

    sarif: Path | None
    junit: Path | None
    html: Path | None
    baseline: Path | None

    def write(self, probed: Probed) -> None:
        """All that was asked for. Raises BadParameter."""
        forms: list[tuple[Path | None, Callable[[Probed], str]]] = [(self.sarif, partial(sarif, tell=warn)), (self.junit, junit), (self.html, html)]
        if probed.interruption is None:
            forms.append((self.baseline, _baseline))
        elif self.baseline:
            warn(f"{self.baseline} is not written: what was not probed would be missing in it")
        for path, form in forms:
            if path is not None:
                _put(path, form(probed))


def _baseline(probed: Probed) -> str:
    return baseline_text(probed.known())


def _put(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"{str(path)!r} cannot be written: {error.strerror}") from error
