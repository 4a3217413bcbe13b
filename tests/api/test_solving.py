"""What trainers' rollouts say of how hard tasks are."""

from __future__ import annotations

from typing import Any

import pytest

from inspector.probe.sequential import Standing
from inspector.probe.words import Outcome
from inspector.solving import judged
from inspector.testing import envelope
from tests.api.conftest import House, paid_despite_failures
from tests.api.test_probes import VERSION, list_tasks, registered, start, states, work_off

__all__ = ["registered"]


def rollout(id_: str, reward: float | None, task: str = "a", **more: Any) -> dict[str, Any]:
    return envelope(id=id_, environment={"id": "acme/rows", "version": "1"}, task={"id": task}, reward=reward, group=None, run=None, **more)


@pytest.mark.parametrize(
    ("paid", "standing"),
    [
        ([False] * 30, Standing.DEAD),
        ([True] * 30, Standing.EASY),
        ([True, False] * 6, Standing.USABLE),
        ([False] * 5, Standing.OPEN),
        ([], Standing.OPEN),
    ],
)
def test_rollouts_say_whether_a_task_is_never_solved_too_easy_or_in_between(paid: list[bool], standing: Standing) -> None:
    found = judged(paid)
    assert (found.scored, found.paid, found.standing) == (len(paid), sum(paid), standing)
    assert found.rate.low <= (sum(paid) / len(paid) if paid else 0.0) <= found.rate.high


def test_a_scorecard_shows_rollouts_beside_outcomes_and_that_nobody_solved_a_task_moves_nothing(registered: House) -> None:
    house = registered
    house.post(*(rollout(f"a{at}", 0.0) for at in range(30)), *(rollout(f"b{at}", 1.0, "b") for at in range(3)), rollout("unscored", None, "b"))
    start(house)
    list_tasks(house, "a", "b", "c")
    work_off(house, b=(Outcome.WEAK_VERIFIER,))
    shown = {one["task"]: one["rollouts"] for one in house.get(f"{VERSION}/scorecard").json()["tasks"]}
    assert (shown["a"]["scored"], shown["a"]["paid"], shown["a"]["standing"], shown["a"]["rate"], shown["a"]["low"]) == (30, 0, "dead", 0.0, 0.0)
    assert 0.1 < shown["a"]["high"] < 0.12
    assert (shown["b"]["scored"], shown["b"]["paid"], shown["b"]["standing"], shown["c"]) == (3, 3, "open", None)
    assert "a" not in states(house)
    assert house.get(f"{VERSION}/tasks/a").json()["rollouts"] == shown["a"]


def test_paid_is_what_the_declaration_says(registered: House) -> None:
    registered.post(*(rollout(f"a{at}", 0.5) for at in range(4)))
    assert registered.get(f"{VERSION}/tasks/a").json()["rollouts"]["paid"] == 4
    assert registered.call("PUT", VERSION, {"reward": {"min": 0, "max": 1, "paid_at": 1}}).status_code == 200
    assert registered.get(f"{VERSION}/tasks/a").json()["rollouts"]["paid"] == 0


def test_another_projects_rollouts_are_not_counted(registered: House) -> None:
    registered.post(rollout("mine", 1.0))
    registered.post(rollout("theirs", 0.0), rollout("theirs too", 0.0), holder="other-trainer")
    assert registered.get(f"{VERSION}/tasks/a").json()["rollouts"]["scored"] == 1
    assert registered.get(f"{VERSION}/tasks/a", "other-reviewer").json()["rollouts"]["scored"] == 2
    assert "rollouts" not in registered.get(f"{VERSION}/tasks/a", "admin").json()


def test_the_newest_are_looked_at_and_what_was_excluded_is_not(registered: House) -> None:
    registered.post(*(rollout(f"old{at}", 0.0) for at in range(40)))
    registered.post(*(rollout(f"new{at}", 1.0) for at in range(64)))
    found = registered.get(f"{VERSION}/tasks/a").json()["rollouts"]
    assert (found["scored"], found["paid"], found["standing"]) == (64, 64, "easy")
    defect = {"environment": {"id": "acme/rows", "version": "1"}, "task": {"id": "d"}, "group": None, "run": None}
    registered.post(paid_despite_failures("bad", **defect), rollout("good", 1.0, "d"))
    registered.audit()
    assert registered.get(f"{VERSION}/tasks/d").json()["rollouts"]["scored"] == 1
