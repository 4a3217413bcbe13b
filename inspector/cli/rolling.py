"""`inspector probe --agent`: episodes of a model on the tasks that bring no reference."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
import typer

from inspector.cli.output import Step, warn
from inspector.showable import shell_word, showable

if TYPE_CHECKING:
    from inspector.agent import Agent
    from inspector.environments.protocol import Environment
    from inspector.probe.words import EnvironmentReport

KEY = "INSPECTOR_AGENT_KEY"
SILENT = 2  # tasks in a row to which the endpoint does not answer, after which none is tried
PANEL = "An agent, for tasks without a reference"

Url = Annotated[str, typer.Option("--agent", metavar="URL", help=f"An OpenAI-compatible endpoint; its key is read from {KEY}.", rich_help_panel=PANEL)]
Model = Annotated[str, typer.Option("--agent-model", metavar="NAME", help="The model that is asked.", rich_help_panel=PANEL)]
Episodes = Annotated[int, typer.Option("--agent-runs", min=1, max=256, help="Episodes a task at most; fewer where they decide it.", rich_help_panel=PANEL)]
Turns = Annotated[int, typer.Option("--agent-turns", min=1, max=1000, help="Turns an episode at most.", rich_help_panel=PANEL)]
Written = Annotated[Path | None, typer.Option("--agent-trajectories", metavar="DIR", help="Write each episode there, as ATIF.", rich_help_panel=PANEL)]


class Rolling(NamedTuple):
    """How episodes are made."""

    agent: Agent
    wanted: Wanted

    def added(self, environment: Environment, report: EnvironmentReport, seed: int, step: Step) -> Iterator[EnvironmentReport]:
        """The report with the episodes, after each task that they were made of. Ends where the endpoint does not answer."""
        name, silent = f"agent on {showable(environment.id, limit=60)}", 0
        bare = {task.id for task in environment.tasks() if task.reference is None}
        chosen = [one.task for one in report.tasks if one.task in bare]
        for done, task in enumerate(chosen, 1):
            report = self._rolled(environment, report, task, seed)
            step(name, done, len(chosen))
            silent = silent + 1 if (why := _silence(report, task)) else 0
            if silent == SILENT and done < len(chosen):
                yield _given_up(report, f"The agent was given up: {why}. It came to {done} of the {len(chosen)} tasks without a reference.")
                return
            yield report

    def _rolled(self, environment: Environment, report: EnvironmentReport, task: str, seed: int) -> EnvironmentReport:
        from inspector.agent.telling import with_rollouts

        report = with_rollouts(environment, report, self.agent, runs=self.wanted.runs, seed=seed, folder=self.wanted.folder, only={task})
        more = " ".join(map(shell_word, self.wanted.words()))  # or the same would not come out again
        tasks = [msgspec.structs.replace(one, reproduce=f"{one.reproduce} {more}") if one.task == task else one for one in report.tasks]
        return msgspec.structs.replace(report, tasks=tuple(tasks))


def _given_up(report: EnvironmentReport, note: str) -> EnvironmentReport:
    warn(note)
    return msgspec.structs.replace(report, notes=(*report.notes, note))


def _silence(report: EnvironmentReport, task: str) -> str:
    """Why the endpoint answered in no episode of a task; empty where it did in one."""
    from inspector.agent import Ending
    from inspector.probe.words import Family

    details = [run.detail for one in report.tasks if one.task == task for run in one.runs if run.family is Family.ROLLOUT]
    return details[-1].partition(": ")[2] if details and all(one.startswith(f"{Ending.ENDPOINT} ") for one in details) else ""


class Wanted(NamedTuple):
    """What was asked for of an agent; an empty address asks for none."""

    url: str
    model: str
    runs: int
    turns: int
    folder: Path | None

    def words(self) -> list[str]:
        """The same again, on a command line; what is written down is not written down a second time."""
        numbers = ["--agent-runs", str(self.runs), "--agent-turns", str(self.turns)]
        return ["--agent", self.url, "--agent-model", self.model, *numbers] if self.url else []

    def checked(self) -> Wanted:
        """Itself. Raises BadParameter."""
        if self.url and not self.url.startswith(("http://", "https://")):
            raise typer.BadParameter(showable(f"{self.url!r} is no http(s) address", limit=300), param_hint="--agent")
        if self.url and not self.model:
            raise typer.BadParameter("an agent needs the name of its model", param_hint="--agent-model")
        return self


@contextmanager
def rolling(wanted: Wanted) -> Iterator[Rolling | None]:
    """None where no agent was asked for."""
    from inspector.agent import Agent, Allowance, Endpoint

    if not wanted.url:
        yield None
        return
    endpoint = Endpoint(wanted.url, wanted.model, key=os.environ.get(KEY, ""))
    try:
        yield Rolling(Agent(endpoint, Allowance(turns=wanted.turns)), wanted)
    finally:
        endpoint.close()
