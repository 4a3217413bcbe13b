"""Benchmark rows as an environment: a program of set-up, submission and tests, run to its end.

Such rows ship no verifier. Ours is the common one: `exec(code + tests)` in a process of its own, paid with 1 where it reaches the end of the tests
and nothing was raised. An exit before that end (`sys.exit(0)`, `os._exit(0)`) is not paid, as the word that tells the end is said behind the tests. Nothing
that runs in one process with a program can keep that word from it: one that walks up the frames finds it, as it finds the tests of any such verifier.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from inspector.environments import boxes
from inspector.environments.protocol import AS_DECLARED, Conditions, Grade, Kind, Submission, TaskUnderTest, Text, Trouble, Unreadable
from inspector.environments.rows import Row, unique
from inspector.environments.trees import digest
from inspector.sandbox.protocol import Backend, Broken, Limits, Refused

CPU_S = 3.0  # of one grade; wall time alone would make a busy machine look like an endless loop
WALL_S = 60.0
ENDED_AT = 0.6  # of that time, as a box counts it, where the kernel ended a program: the two clocks differ on a busy machine
LIMITS = Limits(wall_s=WALL_S, memory_bytes=1 << 30, pids=64, disk_bytes=256 << 20, output_bytes=64 << 10)


@dataclass(frozen=True, slots=True)
class _Parts:
    """A row in our words."""

    id: str
    prompt: str
    reference: str | None
    tests: tuple[str, ...]
    setup: str = ""  # before the submission
    entry_point: str | None = None
    notes: tuple[str, ...] = ()


def reads(value: Mapping[str, Any]) -> bool:
    """Whether a row is of this kind."""
    return any(name in value for name in ("tests", "test_list")) or ("test" in value and "entry_point" in value)


class BenchmarkRows:
    """A data set of programming tasks with tests."""

    def __init__(self, name: str, rows: Sequence[Row], backend: Backend, *, cpu_s: float = CPU_S, limits: Limits = LIMITS) -> None:
        self.id = name
        self._backend = backend
        self._cpu_s = cpu_s
        self._limits = limits
        parts = [_read(row) for row in rows]
        self._parts = dict(zip(unique([each.id for each in parts]), parts, strict=True))

    @cached_property
    def version(self) -> str:
        """sha256 of the rows as read."""
        return digest((id.encode(), repr(parts).encode()) for id, parts in sorted(self._parts.items()))

    @cached_property
    def verifier_digest(self) -> str:
        """sha256 of the tests, what precedes the submission, and the program that runs them."""
        own = [(b"runner", boxes.source("program").encode())]
        return digest(own + [(id.encode(), repr((each.setup, each.tests)).encode()) for id, each in sorted(self._parts.items())])

    @cached_property
    def _tasks(self) -> tuple[TaskUnderTest, ...]:
        return tuple(_task(id, parts) for id, parts in self._parts.items())

    def tasks(self) -> Sequence[TaskUnderTest]:
        """In the order of the rows."""
        return self._tasks

    def grade(self, task: TaskUnderTest, submission: Submission, conditions: Conditions = AS_DECLARED) -> Grade:
        """Run set-up, submission and the task's tests as one program."""
        if not isinstance(submission, Text):
            return Grade(None, trouble=Trouble.REFUSED, evidence=f"a program is graded here, not a {type(submission).__name__.lower()}")
        program = assembled(self._parts[task.id].setup, submission.text, task.tests)
        try:
            return self._run(program, conditions)
        except (Refused, Broken) as error:
            return boxes.troubled(error)

    def _run(self, program: str, conditions: Conditions) -> Grade:
        cpu_s = max(1.0, min(self._cpu_s, conditions.timeout_s or self._cpu_s))
        wall_s = min(self._limits.wall_s, 8 * cpu_s)
        request = b"%d\n%b" % (cpu_s, program.encode(errors="replace"))
        with boxes.fresh(self._backend, limits=self._limits, network=boxes.network_of(conditions)) as box:
            reply = boxes.ask(box, "program", request, timeout_s=wall_s, environment=boxes.variables(conditions))
        stopped = boxes.ended(reply.result, wall_s, self._limits.memory_bytes)
        return stopped or _ended(reply, cpu_s) or boxes.measured(_paid(reply), reply.result)


def _ended(reply: boxes.Reply, cpu_s: float) -> Grade | None:
    """The grade of what used up its processor time; the kernel's signal comes as one or as an exit code."""
    if reply.answer is not None or reply.result.exit_code == 1 or reply.result.cpu_s < ENDED_AT * cpu_s:
        return None
    evidence = f"timeout: no end within {cpu_s:g} s of processor time\n{boxes.tail(reply.result)}"
    return boxes.measured(Grade(None, trouble=Trouble.TIMED_OUT, evidence=evidence), reply.result)


def _paid(reply: boxes.Reply) -> Grade:
    if reply.answer is not None:
        return Grade(1.0, evidence=boxes.tail(reply.result))
    said = boxes.tail(reply.result)
    early = f"ended with {reply.result.ended} {reply.result.exit_code} before the tests did"
    return Grade(0.0, evidence=said if "Traceback" in said or "Error" in said else f"{said}\n{early}".strip())


def assembled(setup: str, submission: str, tests: Sequence[str]) -> str:
    """One program, in the order in which such verifiers put it together."""
    return "\n".join([*([setup] if setup else []), submission, *tests, ""])


def _task(id: str, parts: _Parts) -> TaskUnderTest:
    reference = None if parts.reference is None else Text(parts.reference)
    entry_point = parts.entry_point or called(parts.tests, parts.reference)
    return TaskUnderTest(id, Kind.CODE, parts.prompt, reference, entry_point=entry_point, tests=parts.tests, notes=parts.notes)


def _read(row: Row) -> _Parts:
    for known, read in FACES:
        if known <= row.value.keys():
            return read(row)
    raise Unreadable(f"{row.place}: no row of tests: has {', '.join(sorted(row.value))[:200]}; wanted are {WANTED}")


def _mbpp(row: Row) -> _Parts:
    prompt = row.text("text") if "text" in row.value else row.text("prompt")
    setup = row.text("test_setup_code", "") or "\n".join(row.texts("test_imports") if row.value.get("test_imports") else ())
    more = row.value.get("challenge_test_list")
    notes = (f"challenge_test_list is not run: {len(more)} tests",) if isinstance(more, list) and more else ()
    return _Parts(_id(row), prompt, row.text("code"), _tests(row, "test_list"), setup, notes=notes)


def _humaneval(row: Row) -> _Parts:
    prompt, entry_point = row.text("prompt"), row.text("entry_point")
    solution = row.value.get("canonical_solution")
    reference = None if solution is None else prompt + row.text("canonical_solution")
    return _Parts(_id(row), prompt, reference, (row.text("test"), f"check({entry_point})"), prompt, entry_point)


def _own(row: Row) -> _Parts:
    reference = None if row.value.get("reference") is None else row.text("reference")
    entry_point = row.text("entry_point", "") or None
    return _Parts(_id(row), row.text("prompt"), reference, _tests(row, "tests"), row.text("setup", ""), entry_point)


FACES: tuple[tuple[frozenset[str], Callable[[Row], _Parts]], ...] = (
    (frozenset({"test_list", "code"}), _mbpp),
    (frozenset({"prompt", "entry_point", "test"}), _humaneval),
    (frozenset({"prompt", "tests"}), _own),
)
WANTED = ", or ".join(" and ".join(sorted(known)) for known, _ in FACES)


def _id(row: Row) -> str:
    value = row.value.get("task_id")
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise Unreadable(f"{row.place}: task_id is {value!r:.80}, not a name or a number")
    return str(value)


def _tests(row: Row, name: str) -> tuple[str, ...]:
    tests = [row.text(name)] if isinstance(row.value.get(name), str) else row.texts(name)
    if not any(test.strip() for test in tests):
        raise Unreadable(f"{row.place}: {name} is empty, so that everything passes")
    return tuple(tests)


def called(tests: Sequence[str], reference: str | None) -> str | None:
    """The function that tests call: one that the reference defines, else the first that is no built-in one."""
    names = [name for test in tests for name in _calls(test)]
    defined = set(_definitions(reference or ""))
    for name in names:
        if name in defined or (not defined and name not in BUILT_IN):
            return name
    return None


BUILT_IN = frozenset(dir(__builtins__) if not isinstance(__builtins__, dict) else __builtins__)


def _calls(text: str) -> Iterator[str]:
    calls = [node.func for node in ast.walk(_parsed(text)) if isinstance(node, ast.Call)]
    return (call.id for call in calls if isinstance(call, ast.Name))


def _definitions(text: str) -> Iterator[str]:
    return (node.name for node in _parsed(text).body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef))


def _parsed(text: str) -> ast.Module:
    """A module without statements where the text is no Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of foreign text, as of an escape that Python will not know one day
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module(body=[], type_ignores=[])
