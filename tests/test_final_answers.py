"""What counts as the answer of an episode, and which answers are the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.final_answers import WHOLE, final_answer, normalised
from inspector.testing import trajectory
from inspector.trajectory import text_of


def answered(message, **step):
    steps = [{"step_id": 1, "source": "user", "message": "What is 17 + 4?"}, {"step_id": 2, "source": "agent", "message": message, **step}]
    return trajectory(steps=steps)


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        (" Twenty\n one. ", "twenty one"),
        ("17 + 4 = 21\n#### 21", "21"),
        ("so <answer>20</answer>, no: <answer> 21 </answer> it is", "21"),
        (r"thus $\boxed{\frac{1}{2}}$ follows", r"\frac{1}{2}"),
        (r"first \boxed{20}, then <answer>21</answer>", "21"),
        ("２１", "21"),
        ('**"-.5".**', "-.5"),
    ],
)
def test_the_last_marked_place_counts_or_the_whole_of_a_short_message(message, answer):
    assert final_answer(answered(message)).text == answer


@pytest.mark.parametrize("message", ["", "  ", "?!", None])
def test_nothing_is_an_answer_too_since_a_verifier_may_pay_for_it(message):
    assert final_answer(answered(message)).text == ""


def test_a_long_text_that_marks_no_place_is_no_answer():
    assert final_answer(answered("x" * (WHOLE + 1))) is None
    assert final_answer(trajectory(steps=[{"step_id": 1, "source": "user", "message": "hm"}])) is None


def test_who_called_a_tool_may_have_left_what_was_graded():
    call = {"tool_call_id": "c", "function_name": "bash", "arguments": {"command": "ls"}}
    assert final_answer(answered("21", tool_calls=[call])) is None
    assert final_answer(trajectory()) is None


@given(st.text(max_size=60))
def test_it_stands_where_it_says_and_normalising_twice_changes_nothing(message):
    found = final_answer(subject := answered(message))
    if found is not None:
        said = text_of(subject.document.steps[found.step].message)
        assert normalised(said[found.start : found.end]) == found.text
        assert normalised(found.text) == found.text
