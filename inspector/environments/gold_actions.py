"""Rows with gold actions (tau-bench), read without execution: what changes the database is compared, call by call.

The benchmark replays gold and submitted actions and compares the databases; equal writing calls in equal order give equal databases, so the reward here
is a lower bound of its database check. Reading calls change nothing. What must be said to the user is a component of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from inspector.environments.protocol import AS_DECLARED, Conditions, Grade, Kind, Submission, TaskUnderTest, Text, Trouble, Unreadable
from inspector.environments.rows import Row, unique
from inspector.environments.trees import digest

READS = re.compile(r"^(?:get|find|list|search|lookup|look_up|read|check|calculate|compute|think|view|show|query|fetch|count|transfer_to_human)(?:_|$)")


@dataclass(frozen=True, slots=True)
class _Gold:
    id: str
    prompt: str
    actions: tuple[Mapping[str, Any], ...]
    said: tuple[str, ...]


def reads(value: Mapping[str, Any]) -> bool:
    """Whether a row is of this kind."""
    criteria = value.get("evaluation_criteria")
    return (isinstance(criteria, dict) and "actions" in criteria) or ("actions" in value and "instruction" in value)


class GoldActions:
    """Rows of one file."""

    def __init__(self, name: str, rows: Sequence[Row]) -> None:
        self.id = name
        read = [_read(row, number) for number, row in enumerate(rows)]
        self._rows = dict(zip(unique([each.id for each in read]), read, strict=True))

    @cached_property
    def version(self) -> str:
        """sha256 of the rows as read."""
        return digest((id.encode(), repr(row).encode()) for id, row in sorted(self._rows.items()))

    @cached_property
    def verifier_digest(self) -> str:
        """sha256 of the gold actions and what must be said."""
        return digest((id.encode(), repr((row.actions, row.said)).encode()) for id, row in sorted(self._rows.items()))

    def tasks(self) -> Sequence[TaskUnderTest]:
        """In the order of the rows."""
        return [_task(id, row) for id, row in self._rows.items()]

    def grade(self, task: TaskUnderTest, submission: Submission, conditions: Conditions = AS_DECLARED) -> Grade:
        """Compare a JSON list of actions with the gold ones; an empty text is no action at all."""
        if not isinstance(submission, Text):
            return Grade(None, trouble=Trouble.REFUSED, evidence="a list of actions is graded here")
        gold = self._rows[task.id]
        try:
            given = [] if not submission.text.strip() else list(_actions("submission", json.loads(submission.text)))
        except (ValueError, RecursionError, Unreadable) as error:
            return Grade(0.0, {"database": 0.0}, evidence=f"no list of actions: {str(error)[:200]}")
        wanted, done = writes(gold.actions), writes(given)
        equal = float(wanted == done)
        return Grade(equal, {"database": equal, **_told(gold, submission.text)}, evidence=f"gold writes: {wanted[:20]}; submitted writes: {done[:20]}"[:4000])


def _told(gold: _Gold, text: str) -> dict[str, float]:
    return {"communicated": sum(each in text for each in gold.said) / len(gold.said)} if gold.said else {}


def writes(actions: Sequence[Mapping[str, Any]]) -> list[str]:
    """The calls that change something, in one spelling."""
    return [f"{each['name']}({json.dumps(each['arguments'], sort_keys=True)})" for each in actions if not READS.match(each["name"])]


def _task(id: str, gold: _Gold) -> TaskUnderTest:
    notes = [] if writes(gold.actions) else ["no gold action changes anything: doing nothing leaves the right database"]
    reference = Text(json.dumps([dict(each) for each in gold.actions]))
    return TaskUnderTest(id, Kind.ACTIONS, gold.prompt, reference, notes=tuple(notes))


def _read(row: Row, number: int) -> _Gold:
    criteria = row.value.get("evaluation_criteria")
    source = criteria if isinstance(criteria, dict) else row.value
    said = source.get("communicate_info", source.get("outputs")) or []
    if not isinstance(said, list):
        raise Unreadable(f"{row.place}: what must be said is {said!r:.80}, not a list")
    id = row.value.get("id", row.value.get("task_id", number))
    return _Gold(str(id)[:200], _prompt(row), tuple(_actions(row.place, source.get("actions") or [])), tuple(map(str, said)))


def _prompt(row: Row) -> str:
    scenario = row.value.get("user_scenario")
    if isinstance(scenario, dict):
        told = scenario.get("instructions")
        return told if isinstance(told, str) else "\n".join(f"{name}: {value}" for name, value in told.items() if value) if isinstance(told, dict) else ""
    instruction = row.value.get("instruction", "")
    return instruction if isinstance(instruction, str) else json.dumps(instruction)


def _actions(place: str, listed: object) -> Iterator[Mapping[str, Any]]:
    if not isinstance(listed, list):
        raise Unreadable(f"{place}: actions is {listed!r:.80}, not a list")
    for each in listed:
        arguments = each.get("arguments", each.get("kwargs", {})) if isinstance(each, dict) else None
        if not isinstance(arguments, dict) or not isinstance(each.get("name"), str):
            raise Unreadable(f"{place}: action {each!r:.80} has no name and arguments")
        yield {"name": each["name"], "arguments": arguments}
