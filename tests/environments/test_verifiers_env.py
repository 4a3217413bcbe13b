"""Environments of the verifiers library, where it is installed beside this program."""

from __future__ import annotations

import pytest

from inspector.environments.protocol import Text, Unreadable

verifiers = pytest.importorskip("verifiers")
RUBRIC = """
import verifiers
from datasets import Dataset

def right(completion, answer, **columns):
    return float(completion[-1]["content"].strip() == f"\\\\boxed{{{answer}}}")

def load_environment():
    rows = Dataset.from_list([{"question": "1 + 1?", "answer": "2"}, {"question": "2 + 2?", "answer": "4"}])
    return verifiers.SingleTurnEnv(dataset=rows, rubric=verifiers.Rubric(funcs=[right], weights=[1.0]))
"""
TASKSET = """
import verifiers.v1 as vf

class Row(vf.TaskData):
    answer: str

class Sum(vf.Task[Row]):
    @vf.reward
    async def right(self, task, trace) -> float:
        return float(trace.last_reply == f"\\\\boxed{{{task.answer}}}")

class Sums(vf.Taskset[Sum]):
    def load(self):
        for number in (1, 2):
            yield Sum(Row(prompt=f"{number} + {number}?", answer=str(number + number)))

__all__ = ["Sums"]
"""


@pytest.fixture
def sums(opened, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "environments" / "small_sums"
    folder.mkdir(parents=True)
    (folder / "small_sums.py").write_text(RUBRIC if hasattr(verifiers, "load_environment") else TASKSET)
    return opened("verifiers:small-sums")


def test_a_right_answer_is_paid_in_the_form_that_the_rubric_takes(sums):
    first, second = sums.tasks()
    assert (first.prompt, second.prompt) == ("1 + 1?", "2 + 2?")
    assert first.reference == Text("\\boxed{2}")
    assert [sums.grade(first, each).reward for each in (first.reference, Text("2"), Text(""))] == [1.0, 0.0, 0.0]


def test_an_environment_that_is_nowhere_is_unreadable(opened):
    with pytest.raises(Unreadable):
        opened("verifiers:no-such-environment").tasks()
