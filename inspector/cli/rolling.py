"""`inspector probe --agent`: episodes of a model on the tasks that bring no reference."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from inspector.cli.output import Step
from inspector.showable import showable

if TYPE_CHECKING:
    from inspector.agent import Agent
    from inspector.environments.protocol import Environment
    from inspector.probe.words import EnvironmentReport

KEY = "INSPECTOR_AGENT_KEY"
PANEL = "An agent, for tasks without a reference"

Url = Annotated[str, typer.Option("--agent", metavar="URL", help=f"An OpenAI-compatible endpoint; its key is read from {KEY}.", rich_help_panel=PANEL)]
Model = Annotated[str, typer.Option("--agent-model", metavar="NAME", help="The model that is asked.", rich_help_panel=PANEL)]
Episodes = Annotated[int, typer.Option("--agent-runs", min=1, max=256, help="Episodes a task at most; fewer where they decide it.", rich_help_panel=PANEL)]
Turns = Annotated[int, typer.Option("--agent-turns", min=1, max=1000, help="Turns an episode at most.", rich_help_panel=PANEL)]
Written = Annotated[Path | None, typer.Option("--agent-trajectories", metavar="DIR", help="Write each episode there, as ATIF.", rich_help_panel=PANEL)]


class Rolling(NamedTuple):
    """How episodes are made."""

    agent: Agent
    runs: int
    folder: Path | None

    def added(self, environment: Environment, report: EnvironmentReport, seed: int, step: Step) -> Iterator[EnvironmentReport]:
        """The report with the episodes, after each task that they were made of."""
        from inspector.agent.telling import with_rollouts

        name = f"agent on {showable(environment.id, limit=60)}"
        bare = {task.id for task in environment.tasks() if task.reference is None}
        chosen = [one.task for one in report.tasks if one.task in bare]
        for done, task in enumerate(chosen, 1):
            report = with_rollouts(environment, report, self.agent, runs=self.runs, seed=seed, folder=self.folder, only={task})
            step(name, done, len(chosen))
            yield report


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
        yield Rolling(Agent(endpoint, Allowance(turns=wanted.turns)), wanted.runs, wanted.folder)
    finally:
        endpoint.close()
