"""Gold actions: what changes the database is compared, what reads it is not."""

from __future__ import annotations

import csv
import json

import pytest

from inspector.environments.protocol import Kind, Text, Unreadable

GET = {"name": "get_order_details", "arguments": {"order": "7"}}
CANCEL = {"name": "cancel_order", "arguments": {"order": "7", "reason": "late"}}
SHOP = {"id": "a", "user_scenario": {"instructions": {"reason_for_call": "Cancel 7.", "unknown_info": None}}}


def row(*actions, said=()):
    return {**SHOP, "evaluation_criteria": {"actions": list(actions), "communicate_info": list(said)}}


@pytest.fixture
def graded(opened, rows):
    def of(gold, *given):
        environment = opened(rows(gold))
        (task,) = environment.tasks()
        return environment.grade(task, Text(json.dumps(list(given)) if given else ""))

    return of


def test_the_gold_actions_are_paid_and_nothing_is_not(opened, rows):
    environment = opened(rows(row(GET, CANCEL)))
    (task,) = environment.tasks()
    assert (task.kind, task.prompt, task.notes) == (Kind.ACTIONS, "reason_for_call: Cancel 7.", ())
    assert environment.grade(task, task.reference).reward == 1.0
    assert environment.grade(task, Text("")).reward == 0.0


def test_reading_changes_nothing_and_order_of_arguments_is_no_difference(graded):
    assert graded(row(GET, CANCEL), {"name": "cancel_order", "arguments": {"reason": "late", "order": "7"}}).reward == 1.0
    assert graded(row(GET, CANCEL), CANCEL, CANCEL).reward == 0.0
    assert graded(row(GET, CANCEL), {**CANCEL, "arguments": {"order": "8"}}).reward == 0.0


def test_doing_nothing_passes_where_no_gold_action_changes_anything(opened, rows, graded):
    grade = graded(row(GET, said=["42"]))
    assert (grade.reward, grade.components) == (1.0, {"database": 1.0, "communicated": 0.0})
    (task,) = opened(rows(row(GET))).tasks()
    assert "doing nothing leaves the right database" in task.notes[0]


@pytest.mark.parametrize("text", ["{", "7", '[{"name": 1}]', "[" * 100_000, '{"name": "x"}'])
def test_what_is_no_list_of_actions_is_not_paid(opened, rows, text):
    environment = opened(rows(row(CANCEL)))
    (task,) = environment.tasks()
    assert environment.grade(task, Text(text)).reward == 0.0


@pytest.mark.parametrize("actions", [3, [{"name": "x", "arguments": []}], ["cancel"]])
def test_a_row_that_cannot_be_read_is_named(opened, rows, actions):
    with pytest.raises(Unreadable, match=r"rows\.jsonl:1"):
        opened(rows({**SHOP, "evaluation_criteria": {"actions": actions}}))


def test_the_known_do_nothing_passes_of_tau_are_named_exactly(opened, public_data):
    environment = opened(public_data / "tau_retail" / "retail_old_37199f3.jsonl.gz")
    with (public_data / "tau_retail" / "labels.csv").open() as file:
        known = {row["task_id"] for row in csv.DictReader(file) if row["null_agent_db_pass"] == "1"}
    assert {task.id for task in environment.tasks() if environment.grade(task, Text("")).reward == 1.0} == known
    assert all(environment.grade(task, task.reference).reward == 1.0 for task in environment.tasks())
