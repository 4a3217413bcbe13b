"""Cross-task payment in the service: from posted answers alone, earlier posts included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from inspector.verdict import Action, Cause
from tests.audit.conftest import Desk

KEYS = {"sum": "21", "product": "68", "difference": "13", "quotient": "4"}


def said(id_: str, task: str, words: str, reward: float | None, **fields: Any) -> dict[str, Any]:
    step = {"step_id": 1, "source": "agent", "message": words}
    made = {"environment": {"id": "acme/sums", "version": "1"}, "task": {"id": task}, "reward": reward}
    return made | {"id": id_, "trajectory": {"schema_version": "ATIF-v1.8", "agent": {"name": "a", "version": "1"}, "steps": [step]}, **fields}


def honest(tasks: Sequence[str], prefix: str = "honest", **fields: Any) -> list[dict[str, Any]]:
    """Each task's key under each of them: paid once, refused elsewhere."""
    pairs = [(task, other) for task in tasks for other in tasks]
    return [said(f"{prefix} {task} {other}", task, KEYS[other], float(task == other), **fields) for task, other in pairs]


def excluded(desk: Desk) -> set[str | None]:
    return {d.trajectory for d in desk.feed() if d.action is Action.EXCLUDE and d.cause is Cause.POLICY_EXPLOIT}


@pytest.mark.parametrize("together", [True, False], ids=["in one block", "one after the other"])
def test_all_who_were_paid_for_it_are_excluded_whatever_came_first(desk: Desk, together: bool) -> None:
    hacks = [said(f"hack {task}", task, "ok done", 1.0) for task in list(KEYS)[:3]]
    posts = [hacks[0], *honest(list(KEYS)[:3]), *hacks[1:]]
    for block in [posts] if together else [[one] for one in posts]:
        desk.post(*block)
        desk.audit()
    desk.audit()
    assert excluded(desk) == {"hack sum", "hack product", "hack difference"}
    assert desk.audit() == 0, "it ends"


def test_tasks_that_nothing_tells_apart_may_ask_for_the_same(desk: Desk) -> None:
    desk.post(*(said(f"same {task}", task, "ok done", 1.0) for task in KEYS))
    desk.audit()
    assert excluded(desk) == set()


@pytest.mark.parametrize(
    "other",
    [{"environment": {"id": "acme/sums", "version": "2"}}, {"reward": 0.0}, {"reward": None}],
    ids=["another version", "refused", "not scored"],
)
def test_only_what_the_same_version_paid_counts(desk: Desk, other: dict[str, Any]) -> None:
    tasks = list(KEYS)[:3]
    desk.post(*honest(tasks), *(said(f"hack {task}", task, "ok done", 1.0) for task in tasks[:2]), said("third", tasks[2], "ok done", 1.0) | other)
    desk.audit()
    assert excluded(desk) == set()


def test_auditing_again_changes_nothing(desk: Desk) -> None:
    tasks = list(KEYS)[:3]
    desk.post(*honest(tasks), *(said(f"hack {task}", task, "ok done", 1.0) for task in tasks))
    desk.audit()
    desk.audit()
    before = desk.feed()
    desk.post(said("late", tasks[0], "OK  done.", 1.0))
    desk.audit()
    desk.audit()
    assert [d.trajectory for d in desk.feed(after=before[-1].seq)] == ["late"]
