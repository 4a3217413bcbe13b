"""Finds Harbor task folders, and reads one."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from inspector.environments.harbor.config import TaskConfig, read_config
from inspector.environments.harbor.standing_in import stand_ins
from inspector.environments.protocol import Kind, Script, TaskUnderTest, Unreadable
from inspector.environments.trees import Tree, read_tree

PROMPT_BYTES = 4 << 20
SEARCHED = 4  # folders deep
PYTHON = re.compile(r"^[ \t]*FROM[ \t]+\S*?\bpython[:-](\d+)[.-](\d+)", re.MULTILINE | re.IGNORECASE)
PLUGIN = re.compile(r"\bpytest[-_](?!json-ctrf|json_ctrf|cache)[a-z]")  # of packages that are asked for by name
BACKGROUND = re.compile(r"\bnohup\b|\bsetsid\b|\bsystemctl\b|\bservice\s+\S+\s+start\b|(?<![&>|])&\s*$", re.MULTILINE)


@dataclass(frozen=True)
class TaskFolder:
    """A task folder as it was when it was listed."""

    id: str
    tree: Tree
    config: TaskConfig

    @cached_property
    def solve(self) -> str | None:
        """The text of the reference."""
        return self.tree.text("solution/solve.sh", PROMPT_BYTES) if "solution/solve.sh" in self.tree else None

    @cached_property
    def test(self) -> str:
        """The text of the verifier's script."""
        return self.tree.text("tests/test.sh", PROMPT_BYTES)

    @cached_property
    def unsupported(self) -> str | None:
        """Why nothing of this task can be graded here."""
        reasons = list(self.config.unsupported)
        reasons += [f"{name} describes services" for name in ("environment/docker-compose.yaml", "environment/docker-compose.yml") if name in self.tree]
        if "environment/Dockerfile" not in self.tree:
            reasons.append(f"image {self.config.docker_image!r:.80} without a Dockerfile" if self.config.docker_image else "no environment/Dockerfile")
        if "tests/test.sh" not in self.tree:
            reasons.append("no tests/test.sh")
        elif self._wants_pytest and importlib.util.find_spec("pytest") is None:
            reasons.append("the verifier calls pytest, which is not installed beside this program")
        return "; ".join(reasons) or None

    @property
    def _wants_pytest(self) -> bool:
        return "pytest" in self.test

    @cached_property
    def pytest_plugins(self) -> bool:
        """Whether the task asks for plug-ins of pytest; a slim image has no others."""
        paths = ["environment/Dockerfile", *(file.path for file in self.tree.files if file.path.endswith(("requirements.txt", "pyproject.toml")))]
        return any(PLUGIN.search(text) for text in (self.test, *(self.tree.text(path, PROMPT_BYTES) for path in paths if path in self.tree)))

    @property
    def starts_services(self) -> bool:
        """Whether its reference leaves processes behind, which end with their box."""
        return self.solve is not None and bool(BACKGROUND.search(self.solve))

    def task(self) -> TaskUnderTest:
        """As a probe sees it."""
        prompt = self.tree.text("instruction.md", PROMPT_BYTES) if "instruction.md" in self.tree else ""
        reference = None if self.solve is None else Script(self.solve, solution=True)
        return TaskUnderTest(
            self.id,
            Kind.STATE,
            prompt,
            reference,
            notes=tuple(self._notes()),
            paid_at=1.0,
            floor=self.config.floor,
            folder=self.tree.root,
            network=self.config.wants_network,
        )

    def _notes(self) -> Iterator[str]:
        yield from self.config.notes
        yield from (f"left out: {each}" for each in self.tree.left_out[:20])
        if self.unsupported:
            yield f"not gradable here: {self.unsupported}"
        elif used := stand_ins(self.test):
            yield f"the verifier's {', '.join(used)} are stood in for, without a network"
        found = PYTHON.search(self.tree.text("environment/Dockerfile", PROMPT_BYTES)) if "environment/Dockerfile" in self.tree else None
        if found and (wanted := (int(found[1]), int(found[2]))) != sys.version_info[:2]:
            yield f"Python {sys.version_info[0]}.{sys.version_info[1]} stands in for {wanted[0]}.{wanted[1]}"
        if "instruction.md" not in self.tree:
            yield "no instruction.md"


@dataclass(frozen=True, slots=True)
class Unread:
    """A task folder that cannot be read, and why."""

    id: str
    root: Path
    reason: str

    def task(self) -> TaskUnderTest:
        """A task of which nothing is known but its name."""
        return TaskUnderTest(self.id, Kind.STATE, "", notes=(self.reason,), folder=self.root, read=False)


def is_task(path: Path) -> bool:
    """Whether a folder is a task folder."""
    return (path / "task.toml").is_file()


def read_folder(root: Path, id: str | None = None) -> TaskFolder:
    """One task folder. Raises Unreadable."""
    tree = read_tree(root)
    return TaskFolder(id or root.name, tree, read_config(tree))


def read_folders(root: Path) -> Sequence[TaskFolder | Unread]:
    """The task folder `root`, or those below it, by their paths. Raises Unreadable where there is none."""
    if is_task(root):
        return [read_folder(root)]
    found = [_read(root, path) for path in sorted(_found(root, SEARCHED))]
    if not found:
        raise Unreadable(f"{root.name}: no task.toml here or up to {SEARCHED} folders below")
    return found


def _read(root: Path, path: Path) -> TaskFolder | Unread:
    id = path.relative_to(root).as_posix()
    try:
        return read_folder(path, id)
    except Unreadable as error:
        return Unread(id, path, str(error))


def _found(folder: Path, deep: int) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            below = [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError as error:
        raise Unreadable(f"{folder.name}: {error.strerror}") from error
    for path in below:
        if is_task(path):
            yield path
        elif deep > 1:
            yield from _found(path, deep - 1)
