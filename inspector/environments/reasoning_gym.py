"""Data sets of reasoning-gym as environments; the library is imported inside boxes only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from inspector.environments.graders import Grader
from inspector.environments.protocol import AS_DECLARED, Conditions, Grade, Kind, Submission, TaskUnderTest, Text, Trouble, Unreadable
from inspector.environments.trees import digest
from inspector.sandbox.protocol import Backend

SIZE, SEED = 5, 42
FLOOR = 0.1  # what the library pays for any answer at all
UNFIT = frozenset({"composite"})  # made of others, which it must be told


def open_reasoning_gym(name: str, backend: Backend, *, size: int = SIZE, seed: int = SEED) -> Sequence[ReasoningGym]:
    """One data set, or `all`. Raises Unreadable where the library is not there, or knows no such data set."""
    grader = Grader(backend, "reasoning_gym", {})
    said = grader.tell({})
    names = [each for each in said["names"] if each not in UNFIT]
    if name != "all" and name not in names:
        raise Unreadable(f"reasoning-gym {said['version']} has no data set {name!r:.80}")
    return [ReasoningGym(each, said["version"], grader, size, seed) for each in (names if name == "all" else [name])]


class ReasoningGym:
    """One data set: its first entries under a fixed seed."""

    def __init__(self, name: str, library: str, grader: Grader, size: int, seed: int) -> None:
        self.id = f"reasoning-gym:{name}"
        self._request = {"dataset": name, "size": size, "seed": seed}
        self._library = library
        self._grader = grader

    @cached_property
    def _said(self) -> Mapping[str, Any]:
        return self._grader.tell(self._request)

    @property
    def version(self) -> str:
        """sha256 of the library's version and the entries."""
        return digest([(self._library.encode(), repr(self._said["entries"]).encode()), (b"source", self.verifier_digest.encode())])

    @property
    def verifier_digest(self) -> str:
        """sha256 of the library's version and the file of the data set."""
        return digest([(self._library.encode(), self._said["source"].encode())])

    def tasks(self) -> Sequence[TaskUnderTest]:
        """The entries. Raises Unreadable where the data set cannot be made."""
        return self._tasks

    @cached_property
    def _tasks(self) -> tuple[TaskUnderTest, ...]:
        return tuple(_task(index, entry) for index, entry in enumerate(self._said["entries"]))

    def grade(self, task: TaskUnderTest, submission: Submission, conditions: Conditions = AS_DECLARED) -> Grade:
        """Score an answer by the entry's data set; a stored answer is scored as the object that it is."""
        if not isinstance(submission, Text):
            return Grade(None, trouble=Trouble.REFUSED, evidence="an answer in words is graded here")
        given = {"index": int(task.id), "text": None if submission.absent else submission.text, "stored": submission.stored}
        return self._grader.grade({**self._request, **given}, conditions)


def _task(index: int, entry: Mapping[str, Any]) -> TaskUnderTest:
    texts = tuple(entry["texts"])
    notes = []
    if entry["missing"]:
        notes.append("stores no answer: whether it can be solved needs a solver")
    elif entry["type"] != "str":
        notes.append(f"the stored answer is a {entry['type']}, no text: what a policy answers is always text")
    reference = Text(texts[0], stored=True) if texts else None
    return TaskUnderTest(str(index), Kind.TEXT, entry["question"], reference, answers=texts, notes=tuple(notes), floor=FLOOR)
