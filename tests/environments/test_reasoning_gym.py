"""Data sets of reasoning-gym, where the library is installed beside this program."""

from __future__ import annotations

import pytest

from inspector.environments.protocol import Kind, Text

pytest.importorskip("reasoning_gym")


def test_a_data_set_pays_its_own_answers_and_no_others(opened):
    environment = opened("reasoning-gym:chain_sum")
    tasks = environment.tasks()
    assert [task.kind for task in tasks] == [Kind.TEXT] * 5
    assert all(environment.grade(task, task.reference).reward == 1.0 for task in tasks)
    assert all(environment.grade(task, Text("no number")).reward <= task.floor for task in tasks)
    assert environment.version == opened("reasoning-gym:chain_sum").version


def test_an_answer_that_is_not_stored_is_no_reference(opened):
    (task, *_) = opened("reasoning-gym:propositional_logic").tasks()
    assert task.reference is None or task.reference.stored
