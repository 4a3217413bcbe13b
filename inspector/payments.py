"""What an environment version paid for one final answer over all its tasks, and what its other answers tell of these tasks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import combinations
from typing import Generic, NamedTuple, TypeVar

from inspector.check import Payments
from inspector.final_answers import digest, final_answer
from inspector.task import Declaration
from inspector.trajectory import Trajectory

LISTED = 64  # tasks that paid an answer and are compared with each other
REFUSED = 0.5  # an answer that more than this share of its tasks refuse answers some of them, and nothing is compared

Version = tuple[str, str]
Task = TypeVar("Task", int, str)


class Compared(NamedTuple, Generic[Task]):
    """What other answers tell of some tasks."""

    apart: set[tuple[Task, Task]]  # pairs, the smaller first, where an answer was paid under one and refused under the other
    own: int  # answers that one of them pays and another refuses
    shared: int  # the same, paid by two that are told apart


def compare(tasks: Collection[Task], answers: Iterable[tuple[Collection[Task], Collection[Task]]]) -> Compared[Task]:
    """Of these tasks alone; each answer comes with the tasks that paid it and those that refused it."""
    among = set(tasks)
    telling = [(p, r) for paid, refused in answers if (p := among.intersection(paid)) and (r := among.intersection(refused))]
    apart = {(min(one, other), max(one, other)) for paid, refused in telling for one in paid for other in refused if one != other}
    shared = sum(any(pair in apart for pair in combinations(sorted(paid), 2)) for paid, _ in telling)
    return Compared(apart, len(telling) - shared, shared)


class Ledger:
    """Gathers in memory which tasks paid every answer, and which refused it."""

    def __init__(self) -> None:
        self._paid: dict[tuple[Version, bytes], dict[str, None]] = {}  # by answer: its tasks
        self._refused: dict[tuple[Version, bytes], dict[str, None]] = {}
        self._of_task: dict[tuple[Version, str], dict[bytes, None]] = {}  # by task: its answers

    def add(self, trajectory: Trajectory, declaration: Declaration) -> None:
        """Take note of one more; what was not scored, or gave no answer, is passed over."""
        answered = final_answer(trajectory)
        if answered is None or trajectory.reward is None:
            return
        version, task = (trajectory.environment.id, trajectory.environment.version), trajectory.task.id
        answer = digest(answered.text)
        kept = self._paid if declaration.pays(trajectory.reward) else self._refused
        kept.setdefault((version, answer), {})[task] = None
        self._of_task.setdefault((version, task), {})[answer] = None

    def of(self, trajectory: Trajectory) -> Payments:
        """What is known of this trajectory's answer."""
        answered = final_answer(trajectory)
        if answered is None:
            return Payments()
        version = (trajectory.environment.id, trajectory.environment.version)
        answer = digest(answered.text)
        paid, refused = self._paid.get((version, answer), {}), self._refused.get((version, answer), {})
        listed = [task for task in paid if task not in refused][:LISTED]
        beside = self._beside(version, listed) if len(refused) <= REFUSED * len(paid | refused) else ()
        told = compare(listed, beside)
        return Payments(True, listed, frozenset(told.apart), len(paid | refused), len(refused), told.own, told.shared)

    def _beside(self, version: Version, tasks: Iterable[str]) -> Iterator[tuple[Collection[str], Collection[str]]]:
        answers = dict.fromkeys(answer for task in tasks for answer in self._of_task[version, task])
        return ((self._paid.get((version, answer), ()), self._refused.get((version, answer), ())) for answer in answers)
