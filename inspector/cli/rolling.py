"""`inspector probe --agent`: episodes of a model on the tasks that bring no reference."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from inspector.agent import Agent, Allowance, Endpoint
from inspector.agent.telling import with_rollouts
from inspector.cli.output import Step
from inspector.environments.protocol import Environment
from inspector.probe.words import EnvironmentReport
from inspector.showable import showable

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

    def added(self, environment: Environment, report: EnvironmentReport, seed: int, step: Step) -> EnvironmentReport:
        """The report with the episodes."""
        name = f"agent on {showable(environment.id, limit=60)}"
        return with_rollouts(environment, report, self.agent, runs=self.runs, seed=seed, folder=self.folder, tell=lambda done, of: step(name, done, of))


@contextmanager
def rolling(url: str, model: str, runs: int, turns: int, folder: Path | None) -> Iterator[Rolling | None]:
    """None where no agent was asked for."""
    if not url:
        yield None
        return
    if not url.startswith(("http://", "https://")):
        raise typer.BadParameter(showable(f"{url!r} is no http(s) address", limit=300), param_hint="--agent")
    if not model:
        raise typer.BadParameter("an agent needs the name of its model", param_hint="--agent-model")
    endpoint = Endpoint(url, model, key=os.environ.get(KEY, ""))
    try:
        yield Rolling(Agent(endpoint, Allowance(turns=turns)), runs, folder)
    finally:
        endpoint.close()
