"""`inspector audit`, and `inspector checks run`, which is an audit by one check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli import DONE, FAILED, INCONCLUSIVE, UNREADABLE
from inspector.cli.inputs import As, Files, Format, Json, named, sources_of
from inspector.cli.output import json_line, progress, say, table, warn
from inspector.verdict import Action, Outcome, Verdict

if TYPE_CHECKING:
    from inspector.local import Audit, Report
    from inspector.local.declared import Declared

ROWS = 100  # of the table; --json has no limit
NEEDS = 20  # that are listed, where checks could not judge
_WORDS = frozenset({*(v.word for v in Verdict), *(o.word for o in Outcome)})

Declarations = Annotated[list[Path] | None, typer.Option("--environment", metavar="DECLARATION", help="YAML or JSON file of declarations; repeatable.")]
Select = Annotated[list[str] | None, typer.Option("--select", metavar="CHECKS", help="Only these: names, owners or patterns, comma-separated; repeatable.")]
Ignore = Annotated[list[str] | None, typer.Option("--ignore", metavar="CHECKS", help="Not these.")]
FailOn = Annotated[str, typer.Option("--fail-on", metavar="LIST", help="Exit 1 (4 for inconclusive alone) on any of these verdicts or outcomes.")]
PolicyFile = Annotated[Path | None, typer.Option("--policy", metavar="FILE", help="A policy file in place of the default one.")]
Baseline = Annotated[
    list[Path] | None, typer.Option("--baseline", metavar="FILES", help="Ordinary episodes, oldest first, that these are compared with; repeatable.")
]
WithoutReasoning = Annotated[bool, typer.Option("--without-reasoning", help="Drop the agent's reasoning before any check sees it.")]


def audit_files(
    files: Files,
    format: Format = "auto",
    environment: Declarations = None,
    json: Json = False,
    without_reasoning: WithoutReasoning = False,
    fail_on: FailOn = "",
    select: Select = None,
    ignore: Ignore = None,
    policy_file: PolicyFile = None,
    named_as: As = None,
    baseline: Baseline = None,
) -> None:
    """Audit files in this process, with no server: the same checks, the same verdicts.

    Exit codes: 0 done; 1 what --fail-on names was seen; 2 wrong usage; 3 something could not be read (the rest was
    audited); 4 --fail-on inconclusive, and a check could not tell.
    """
    from inspector import catalog, policy
    from inspector.anomaly.fitting import fit
    from inspector.local import Plan, audit
    from inspector.local.declared import read
    from inspector.local.spool import Spool
    from inspector.local.usual import Usual, usual_of

    words = _failing(fail_on)
    chosen = catalog.load().select(only=_split(select), ignore=_split(ignore))
    if not chosen:
        raise typer.BadParameter("no check is left to run")
    declared = read(environment or [])
    place = named(named_as) or _only(declared)
    usual = usual_of(sources_of(baseline, format, place), fit) if baseline else Usual()
    plan = Plan(chosen, policy.load(policy_file), declared, without_reasoning, usual)
    sources = sources_of(files, format, place)
    with Spool() as spool:
        with progress() as step:
            done = audit(sources, plan, spool, step)
        seen = _print(done, json=json)
    raise typer.Exit(_code(done, seen, words))


def _only(declared: Declared) -> tuple[str, str] | None:
    """Records that do not name their environment are of the only one that was declared."""
    return (declared.only.id, declared.only.version) if declared.only else None


def _split(lists: Sequence[str] | None) -> list[str]:
    return [name.strip() for one in lists or [] for name in one.split(",") if name.strip()]


def _failing(text: str) -> set[str]:
    words = set(_split([text]))
    if unknown := sorted(words - _WORDS):
        raise typer.BadParameter(f"{unknown[0]!r} is neither a verdict nor an outcome; these are: {', '.join(sorted(_WORDS))}", param_hint="--fail-on")
    return words


def _code(done: Audit, seen: set[str], failing: set[str]) -> int:
    """An audit of half the input is no audit, so that goes first."""
    if done.refused or not done.trajectories:
        return UNREADABLE
    found = seen & failing
    if found - {Outcome.INCONCLUSIVE.word}:
        return FAILED
    return INCONCLUSIVE if found else DONE


# --- printing --------------------------------------------------------------------------------------------------------


def _print(done: Audit, *, json: bool) -> set[str]:
    """Every verdict and outcome that was seen."""
    from inspector.local.sources import told

    counted = _Counts()
    reports = counted.passing(done.reports)
    if json:
        for report in reports:
            json_line(report.line())
    elif done.trajectories:
        _print_table(nsmallest(ROWS, reports, key=_worst_first), done, counted)
    if not done.trajectories and not done.refused:
        warn("there is no trajectory in what was given")
    for line in told(done.refused):
        warn(f"not read: {line}")
    return counted.words


def _worst_first(report: Report) -> tuple[object, ...]:
    judgement = report.judgement
    return (-judgement.verdict, judgement.action is Action.KEEP, -judgement.probability, report.inspected.environment, report.id)


def _print_table(rows: Sequence[Report], done: Audit, counted: _Counts) -> None:
    columns = ("verdict", "action", "p", "trajectory", "environment", "cause", "why")
    table(columns, (_row(report) for report in rows))
    if done.trajectories > len(rows):
        say(f"and {done.trajectories - len(rows)} more, none worse; --json has them all")
    say("")
    counted.summary()
    if done.duplicates:
        say(f"{done.duplicates} came twice and count once")
    if counted.lossy:
        say(f"{counted.lossy} lost something on import: their extra.import.lost says what")


def _row(report: Report) -> tuple[object, ...]:
    judgement, inspected = report.judgement, report.inspected
    action = judgement.action.value if judgement.reward_override is None else f"{judgement.action.value} {judgement.reward_override:g}"
    place = f"{inspected.environment} {inspected.version}"
    return judgement.verdict.word, action, f"{judgement.probability:.2f}", report.id, place, judgement.cause, "\n".join(line for line in report.why())


class _Counts:
    """What went by, for the summary: by environment version, and by check."""

    def __init__(self) -> None:
        self.words: set[str] = set()
        self.lossy = 0
        self._verdicts: dict[tuple[str, str], Counter[str]] = {}
        self._outcomes: dict[str, Counter[str]] = {}
        self._missing: Counter[tuple[str, str]] = Counter()  # (check, need)

    def passing(self, reports: Iterable[Report]) -> Iterator[Report]:
        for report in reports:
            self._count(report)
            yield report

    def _count(self, report: Report) -> None:
        inspected, judgement = report.inspected, report.judgement
        self.words.add(judgement.verdict.word)
        self.lossy += inspected.lost > 0
        place = self._verdicts.setdefault((inspected.environment, inspected.version), Counter())
        place.update((judgement.verdict.word, judgement.action.value))
        for at, (check, outcome) in enumerate(report.coverage.items()):
            self.words.add(outcome.word)
            self._outcomes.setdefault(check, Counter())[outcome.word] += 1
            if outcome is Outcome.NOT_ASSESSED and at in inspected.notes:
                self._missing[check, inspected.notes[at]] += 1

    def summary(self) -> None:
        verdicts = [Verdict.QUARANTINE.word, Verdict.FLAG.word, Verdict.ACCEPT.word]
        actions = [Action.EXCLUDE.value, Action.OVERRIDE_REWARD.value]
        rows = [(f"{name} {version}", *(seen[word] for word in [*verdicts, *actions])) for (name, version), seen in sorted(self._verdicts.items())]
        table(("environment", *verdicts, *actions), rows)
        say("")
        outcomes = [o.word for o in (Outcome.FLAGGED, Outcome.CLEAN, Outcome.INCONCLUSIVE, Outcome.NOT_ASSESSED, Outcome.ERROR)]
        table(("check", *outcomes), [(check, *(seen[word] for word in outcomes)) for check, seen in sorted(self._outcomes.items())])
        say("")
        for (check, need), count in self._missing.most_common(NEEDS):
            say(f"{check} not assessed, {count} times: {need}")
