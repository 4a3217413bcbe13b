"""What `inspector probe` is asked to probe: the environments that are opened, the tasks that are chosen, and what the lint says of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import typer

from inspector.cli.output import Step, warn
from inspector.environments.lint import lint
from inspector.environments.opening import FUNCTION, open_environments
from inspector.environments.protocol import Environment, TaskUnderTest, Unreadable
from inspector.probe import Depth
from inspector.probe.words import Hint
from inspector.sandbox.opening import open_backend
from inspector.sandbox.protocol import Broken
from inspector.sandbox.reaper import reap
from inspector.showable import shell_word, showable


class Asked(NamedTuple):
    """What was asked for on the command line."""

    path: str
    dataset: Path | None
    depth: Depth
    seed: int
    tasks: Sequence[str]
    agent: Sequence[str] = ()  # words
    network: bool = False  # whether boxes may have one, where a task declares that it needs it

    def command(self) -> str:
        """The same again, without tasks, seed and agent."""
        words = ["inspector", "probe", f"./{self.path}" if self.path.startswith("-") else self.path]
        words += ["--dataset", str(self.dataset)] if self.dataset else []
        words += ["--network"] if self.network else []
        words += ["--depth", self.depth.value] if self.depth is not Depth.QUICK else []
        return " ".join(map(shell_word, words))

    def whole_command(self) -> str:
        """The same again."""
        return " ".join([self.command(), *(f"--task {shell_word(task)}" for task in self.tasks), f"--seed {self.seed}", *map(shell_word, self.agent)])


class UnderTest(NamedTuple):
    """An environment, and the tasks of it that are to be probed."""

    environment: Environment
    tasks: Sequence[TaskUnderTest]

    def hints(self, step: Step) -> Mapping[str, Sequence[Hint]]:
        """What the lint says of each task that is a folder."""
        folders = [(task.id, task.folder) for task in self.tasks if task.folder is not None and task.read]
        found = {}
        for done, (name, folder) in enumerate(folders, 1):
            found[name] = _linted(folder)
            step("lint", done, len(folders))
        return found

    def files(self, asked: Asked) -> dict[tuple[str, str], str]:
        """Where each task is written down, as seen from here; nothing where that is no file."""
        places = {(self.environment.id, task.id): _file(asked, task) for task in self.tasks}
        return {task: _from_here(file) for task, file in places.items() if file is not None}


def opened(asked: Asked) -> list[UnderTest]:
    """Raises Unreadable, and BadParameter for rows that are missing or of no use, and for a task that is in none of the environments."""
    _with_rows(asked)
    _clear_away()
    backend = open_backend(network=asked.network)
    for what, why in backend.capabilities.missing.items():
        warn(f"this machine lacks {what} for boxes: {why}")
    every = [UnderTest(one, one.tasks()) for one in open_environments(asked.path, dataset=asked.dataset, backend=backend)]
    if not any(one.tasks for one in every):
        raise Unreadable(f"{asked.path!r}: there is no task in it")
    return _chosen(every, asked.tasks) if asked.tasks else every


def _clear_away() -> None:
    """What a killed probe left: its mounts would keep the folders that it showed to its boxes from being removed."""
    try:
        reap()
    except Broken as error:
        warn(f"what a killed probe left could not be cleared away: {error}")


def _with_rows(asked: Asked) -> None:
    """Rows are asked for exactly where an environment brings none."""
    named = FUNCTION.fullmatch(asked.path) and not asked.path.startswith("verifiers:") and not Path(asked.path).exists()
    needed = asked.path.startswith(("http:", "https:")) or named
    if needed and asked.dataset is None:
        raise typer.BadParameter(showable(f"{asked.path!r} brings no rows of its own: name a file of them", limit=500), param_hint="--dataset")
    if asked.dataset is not None and not needed:
        raise typer.BadParameter(showable(f"{asked.path!r} brings its own tasks", limit=500), param_hint="--dataset")


def _chosen(every: Sequence[UnderTest], names: Sequence[str]) -> list[UnderTest]:
    known = {task.id for one in every for task in one.tasks}
    if unknown := [name for name in names if name not in known]:
        some = ", ".join(sorted(known)[:10])
        raise typer.BadParameter(showable(f"no task is named {unknown[0]!r}; some of the {len(known)} are: {some}", limit=1000), param_hint="--task")
    chosen = [UnderTest(one.environment, [task for task in one.tasks if task.id in names]) for one in every]
    return [one for one in chosen if one.tasks]


def _linted(folder: Path) -> list[Hint]:
    return [Hint(rule=hint.rule, path=hint.path, line=hint.line, message=hint.message, tested_by=hint.proved_by) for hint in lint(folder)]


def _file(asked: Asked, task: TaskUnderTest) -> Path | None:
    if task.folder is not None:
        return task.folder / "task.toml"
    file = asked.dataset or Path(asked.path)
    return file if file.is_file() else None


def _from_here(file: Path) -> str:
    whole = Path(os.path.abspath(file))
    return (whole.relative_to(Path.cwd()) if whole.is_relative_to(Path.cwd()) else whole).as_posix()
