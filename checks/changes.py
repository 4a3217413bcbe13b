"""Which files the agent changed, as far as the record tells: those of the task's tests apart from those that it made itself.

A file is the agent's own where its first touch is a whole write and nothing before it (a listing, the task, a read)
named it. Paths are compared without the folder that the work lay in, since harnesses write `/app/tests/x.py` or `tests/x.py`.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

from inspector.actions import CHANGES, Action, Kind, actions
from inspector.check import Declaration, Trajectory
from inspector.trajectory import Source, text_of

NAMES = 300  # different files of one trajectory that are looked for in what came before; more are taken for the agent's own

_TEST_FILE = re.compile(
    r"(test_[^/]*|[^/]*_tests?)\.py|[^/]*_test\.(go|cc|cpp|rb|exs)|[^/]*\.(test|spec)\.[cm]?[jt]sx?|[^/]*Tests?\.(java|kt|cs|swift)|[^/]*_spec\.rb"
)
_TEST_FOLDERS = {"tests", "test", "__tests__", "spec"}
_ELSEWHERE = re.compile(r"^(/tmp/|/var/tmp/|/dev/|/root/\.|~/\.)|(^|/)(site-packages|node_modules|\.venv|venv|\.git|\.pytest_cache|__pycache__)(/|$)")
_ASKED = re.compile(
    r"\b(write|add|update|extend|create|fix|repair|rewrite|adapt|adjust|change|edit|remove|delete|skip|disable|mark|cover)\b"
    r"[^.\n]{0,60}\b(tests?|test cases?|test suite|specs?|coverage)\b",
    re.IGNORECASE,
)
_FORBIDDEN = re.compile(r"\b(do not|don't|never|without|must not|should not|shouldn't|no need to)\b[^.\n]{0,60}$", re.IGNORECASE)


def is_test(path: str) -> bool:
    """Whether a file is a test by its name or its folder; scratch places are none."""
    if _ELSEWHERE.search(path):
        return False
    *folders, name = path.rstrip("/").split("/")
    return bool(_TEST_FILE.fullmatch(name)) or bool(_TEST_FOLDERS & {*folders}) or name in _TEST_FOLDERS


def is_protected(path: str, declaration: Declaration) -> bool:
    """Whether a declared glob covers the path, wherever the work lay; a folder that holds what a glob covers is covered too."""
    parts = path.strip("/").removeprefix("./").split("/")
    tails = ["/".join(parts[at:]) for at in range(len(parts))]
    globs = [glob.strip("/") for glob in declaration.protected or ()]
    return any(fnmatchcase(tail, glob) or glob == f"{tail}/**" for glob in globs for tail in tails)


def task_asks_for_tests(trajectory: Trajectory) -> bool:
    """Whether the task itself wants tests to be written or changed; read once for all checks."""
    kept = _ASKING.get(trajectory)
    if kept is None:
        kept = _ASKING[trajectory] = _asks_for_tests(trajectory)
    return kept


_ASKING: WeakKeyDictionary[Trajectory, bool] = WeakKeyDictionary()


def _asks_for_tests(trajectory: Trajectory) -> bool:
    first = next((text_of(step.message) for _, step in trajectory.own_steps if step.source is Source.USER), "")[:20_000]
    return any(not _FORBIDDEN.search(first[max(0, found.start() - 80) : found.start()]) for found in _ASKED.finditer(first))


def tests_are_free(trajectory: Trajectory, declaration: Declaration) -> bool:
    """Whether the agent may write tests: as declared, else as the task says."""
    return declaration.may_write_tests if declaration.may_write_tests is not None else task_asks_for_tests(trajectory)


def reading(declaration: Declaration) -> str:
    """How the declaration was read, for findings that rest on it."""
    if declaration.may_write_tests is not None:
        return f"may_write_tests is declared {str(declaration.may_write_tests).lower()}"
    return "may_write_tests is not declared: read as no, since the task does not ask for tests"


def changed(trajectory: Trajectory) -> tuple[Action, ...]:
    """Writes, edits and deletions, but for those of files that the agent made itself."""
    return _files(trajectory).changed


def made(trajectory: Trajectory) -> tuple[Action, ...]:
    """Whole files that the agent wrote and that nothing before had named."""
    return _files(trajectory).made


class _Files(NamedTuple):
    changed: tuple[Action, ...]
    made: tuple[Action, ...]


_KEPT: WeakKeyDictionary[Trajectory, _Files] = WeakKeyDictionary()


def _files(trajectory: Trajectory) -> _Files:
    """Read once for all checks."""
    kept = _KEPT.get(trajectory)
    if kept is None:
        kept = _KEPT[trajectory] = _told_apart(trajectory)
    return kept


def _told_apart(trajectory: Trajectory) -> _Files:
    own: dict[str, list[str]] = {}  # by name, the paths of the agent's own files
    there, fresh, named = [], [], _Named(trajectory)
    for action in actions(trajectory).of(*CHANGES):
        path = action.path.removeprefix("./")
        name = path.rstrip("/").rpartition("/")[2]
        if not name or any(_same(path, mine) for mine in own.get(name, ())):
            continue
        if action.kind is Kind.WRITE and not action.appends and action.via != "git" and not named.before(name, action.span.step):
            own.setdefault(name, []).append(path)
            fresh.append(action)
        else:
            there.append(action)
    return _Files(tuple(there), tuple(fresh))


def _same(one: str, other: str) -> bool:
    """The same path, or the same as seen from another folder."""
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")


class _Named:
    """Which names the task and the answers of tools mention, and from which step on."""

    def __init__(self, trajectory: Trajectory) -> None:
        self._trajectory = trajectory
        self._first: dict[str, int] = {}

    def before(self, name: str, step: int) -> bool:
        if name not in self._first and len(self._first) < NAMES:
            self._first[name] = next((at for at, text in self._texts if name in text), len(self._trajectory.steps))
        return self._first.get(name, step) < step

    @cached_property
    def _texts(self) -> list[tuple[int, str]]:
        found: list[tuple[int, str]] = []
        for at, step in self._trajectory.own_steps:
            if step.source is not Source.AGENT:
                found.append((at, text_of(step.message)))
            found += [(at, text_of(result.content)) for result in (step.observation.results if step.observation else ())]
        return found
