"""What a hint is, and what a rule sees."""

from __future__ import annotations

import ast
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from inspector.environments.harbor.config import TOML_BYTES
from inspector.environments.harbor.dockerfile import Instruction, NotReplayable, instructions
from inspector.environments.protocol import Unreadable
from inspector.environments.trees import Tree

TEXT_BYTES = 1 << 20
TEST_FILES = 200


class Hint(NamedTuple):
    """Something to look at. It accuses nobody: the probe that it names may prove it."""

    rule: str
    path: str  # relative to the task folder
    line: int  # from 1; 1 where the file as a whole is meant
    message: str
    proved_by: str


class Found(NamedTuple):
    """What a rule found."""

    path: str
    line: int
    message: str


@dataclass(frozen=True)
class Subject:
    """A task folder with its texts, read once."""

    tree: Tree

    def text(self, path: str) -> str:
        """A file's text; empty where there is none, or it is too long to be looked at."""
        if path not in self.tree or self.tree.by_path[path].size > TEXT_BYTES:
            return ""
        return self.tree.text(path, TEXT_BYTES)

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """task.toml as a table; empty where it cannot be read."""
        try:
            return tomllib.loads(self.tree.read("task.toml", TOML_BYTES).decode())
        except (Unreadable, tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError):
            return {}

    def section(self, *names: str) -> Mapping[str, Any]:
        """A table of task.toml; empty where there is none."""
        table: Any = self.config
        for name in names:
            table = table.get(name) if isinstance(table, dict) else None
        return table if isinstance(table, dict) else {}

    @cached_property
    def separate(self) -> bool:
        """Whether the verifier shares nothing with the agent."""
        verifier = self.section("verifier")
        return verifier.get("environment_mode") == "separate" or ("environment_mode" not in verifier and "environment" in verifier)

    @cached_property
    def dockerfile(self) -> Sequence[Instruction]:
        """The image's instructions; none where docker would not read them either."""
        try:
            return instructions(self.text(DOCKERFILE))
        except NotReplayable:
            return ()

    @cached_property
    def instruction(self) -> str:
        """What the agent is told."""
        return self.text(INSTRUCTION)

    @cached_property
    def test(self) -> str:
        """The verifier's script."""
        return self.text(TEST)

    @cached_property
    def solve(self) -> str:
        """The reference's script."""
        return self.text(SOLVE)

    @cached_property
    def test_modules(self) -> Mapping[str, ast.Module]:
        """The verifier's Python files, parsed; those that are no Python are left out."""
        paths = [file.path for file in self.tree.below("tests") if file.path.endswith(".py")][:TEST_FILES]
        parsed = {path: _parsed(self.text(path)) for path in paths}
        return {path: module for path, module in parsed.items() if module is not None}

    def test_texts(self) -> Iterator[tuple[str, str]]:
        """Paths and texts of the verifier's script and Python files."""
        yield TEST, self.test
        yield from ((path, self.text(path)) for path in self.test_modules)

    def line_of(self, path: str, part: str) -> int:
        """Where a part of a file first stands."""
        text = self.text(path)
        return text.count("\n", 0, max(0, text.find(part))) + 1


TASK, INSTRUCTION, DOCKERFILE, TEST, SOLVE = "task.toml", "instruction.md", "environment/Dockerfile", "tests/test.sh", "solution/solve.sh"
Find: TypeAlias = Callable[[Subject], Iterator[Found]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A deterministic look at a task folder."""

    name: str
    proved_by: str  # the probe that tests what the rule suspects
    find: Find

    @property
    def meaning(self) -> str:
        """What it suspects, for people."""
        return (self.find.__doc__ or "").strip()


Rules: TypeAlias = list[Rule]


def rule_of(rules: Rules, name: str, proved_by: str) -> Callable[[Find], Find]:
    """Adds a function to a list of rules."""

    def add(find: Find) -> Find:
        rules.append(Rule(name, proved_by, find))
        return find

    return add


def matches(path: str, text: str, pattern: Any, message: str) -> Iterator[Found]:
    """One find for each line of a text that a pattern finds; comments of scripts do not count."""
    for number, line in enumerate(text.splitlines(), 1):
        if (found := pattern.search(line)) and not line.lstrip().startswith("#"):
            yield Found(path, number, message.format(*found.groups(), match=found[0].strip()[:80]))


def _parsed(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of foreign escapes and comparisons
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
