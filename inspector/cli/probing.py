"""`inspector probe`: what of an environment is sound, in this process, with no server."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inspector.cli import DONE, FAILED, INCONCLUSIVE, UNREADABLE, rolling
from inspector.cli.inputs import Json
from inspector.probe import Depth
from inspector.probe.words import Outcome

if TYPE_CHECKING:
    from inspector.cli.telling import Files
    from inspector.cli.under_test import Asked
    from inspector.reports.baseline import Baseline
    from inspector.reports.probed import Probed

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
Network = Annotated[bool, typer.Option("--network", help="Give a box the network of this machine where its task declares that it needs one.")]
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
    network: Network = False,
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
    could not be read (the rest was probed); 4 --fail-on inconclusive, and a task could not be told; 130 or 143 after Ctrl-C or
    SIGTERM, with what was done until then.
    """
    from inspector.cli.telling import Files
    from inspector.cli.under_test import Asked
    from inspector.reports.baseline import read_baseline

    failing = _failing(fail_on)
    known = read_baseline(baseline) if baseline else None
    wanted = rolling.Wanted(agent, agent_model, agent_runs, agent_turns, agent_trajectories).checked()
    asked = Asked(path, dataset, depth, seed, task or [], wanted.words(), network)
    files = Files(sarif_file, junit_file, html_file, write_baseline)
    raise typer.Exit(_probed(asked, wanted, parallel, known, failing, files, json=json))


def _failing(text: str) -> frozenset[Outcome]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if unknown := [word for word in words if word not in set(Outcome)]:
        raise typer.BadParameter(f"{unknown[0]!r} is no outcome; these are: {WORDS}", param_hint="--fail-on")
    return frozenset(map(Outcome, words))


def _probed(asked: Asked, wanted: rolling.Wanted, parallel: int, known: Baseline | None, failing: frozenset[Outcome], files: Files, *, json: bool) -> int:
    """The exit code. What was done before an interruption is told as what is whole is."""
    from inspector.cli.climbing import Climb, climb_all, interruption
    from inspector.cli.interrupting import Interrupted, interruptible
    from inspector.cli.telling import print_probed, tell_unread
    from inspector.reports.meanings import DEFECTS
    from inspector.reports.probed import Probed

    climbs: list[Climb] = []
    interrupted: Interrupted | None = None
    with interruptible() as stopped:
        try:
            climb_all(climbs, asked, wanted, parallel, stopped)
        except Interrupted as error:
            interrupted = error
        probed = Probed(
            [climb.report() for climb in climbs if climb.started],
            datetime.now(UTC),
            asked.whole_command(),
            known,
            failing or DEFECTS,
            {place: file for climb in climbs for place, file in climb.one.files(asked).items()},
            interruption(interrupted.signal, climbs) if interrupted else None,
        )
        try:
            files.write(probed)  # first: who reads the output may be gone
        finally:
            print_probed(probed, json=json)
        unread = tell_unread([climb.one for climb in climbs])
    return interrupted.code if interrupted else _code(probed, failing, unread)


def _code(probed: Probed, failing: frozenset[Outcome], unread: bool) -> int:
    """A probe of half the input is no probe, so that goes first."""
    if unread:
        return UNREADABLE
    found = probed.new() & failing
    if found - {Outcome.INCONCLUSIVE}:
        return FAILED
    return INCONCLUSIVE if found else DONE
