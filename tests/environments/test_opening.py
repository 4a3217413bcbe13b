"""The one door: what was handed over is told apart, and what is nothing is named."""

from __future__ import annotations

import json
import os

import pytest

from inspector.environments.benchmark_rows import BenchmarkRows
from inspector.environments.gold_actions import GoldActions
from inspector.environments.harbor.face import HarborEnvironment
from inspector.environments.http_verifier import HttpVerifier
from inspector.environments.protocol import Unreadable
from inspector.environments.reward_function import RewardFunction
from inspector.environments.verifiers_env import VerifiersEnvironment

TESTED = {"task_id": 1, "prompt": "Double.", "reference": "def double(x): return 2 * x", "tests": ["assert double(1) == 2"]}
GOLD = {"id": "0", "evaluation_criteria": {"actions": []}, "user_scenario": {"instructions": "Hello."}}


def test_each_face_is_known_by_what_was_handed_over(opened, rows, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "judge.py").write_text("def pay(completions): return [1.0 for _ in completions]\n")
    asked = rows({"prompt": "1 + 1?"}, name="asked.jsonl")
    assert isinstance(opened(folder()), HarborEnvironment)
    assert isinstance(opened(rows(TESTED)), BenchmarkRows)
    assert isinstance(opened(rows(GOLD, name="gold.jsonl")), GoldActions)
    assert isinstance(opened("judge:pay", asked), RewardFunction)
    assert isinstance(opened("judge.py:pay", asked), RewardFunction)
    assert isinstance(opened("http://127.0.0.1:9/verify", asked), HttpVerifier)
    assert isinstance(opened("verifiers:some-environment"), VerifiersEnvironment)


def test_a_link_that_the_user_names_is_followed(opened, rows, tmp_path):
    os.symlink(rows(TESTED), tmp_path / "link.jsonl")
    assert len(opened(tmp_path / "link.jsonl").tasks()) == 1


@pytest.mark.parametrize("name", ["no-such-thing", "judge:pay", "http://127.0.0.1/verify", "../x.jsonl"])
def test_what_is_nothing_is_named(opened, name):
    with pytest.raises(Unreadable, match=name.split(":")[0]):
        opened(name)


def test_an_empty_folder_is_no_environment(opened, tmp_path):
    with pytest.raises(Unreadable, match=r"no task\.toml"):
        opened(tmp_path)


@pytest.mark.parametrize("name", ["reasoning-gym:no_such_data_set", "verifiers:no-such-environment"])
def test_a_library_that_is_not_there_is_unreadable(opened, name):
    with pytest.raises(Unreadable):
        opened(name).tasks()


def test_tau_rows_are_known_in_both_spellings(opened, rows):
    old = {"user_id": "a", "instruction": "Cancel it.", "actions": [{"name": "cancel_order", "kwargs": {"order": 1}}], "outputs": ["done"]}
    (task,) = opened(rows(old)).tasks()
    assert json.loads(task.reference.text) == [{"name": "cancel_order", "arguments": {"order": 1}}]
    assert task.prompt == "Cancel it."
