"""The same answer paid under tasks that ask for different things."""

from __future__ import annotations

import random

import pytest

from checks.payment import cross_task_payment, told_apart
from inspector.check import Declaration, Inconclusive, NotAssessed, Payments
from inspector.payments import Ledger
from inspector.testing import trajectory


def answer(task, message, reward):
    return trajectory(task={"id": task}, reward=reward, steps=[{"step_id": 1, "source": "agent", "message": message}])


def flagged(answers):
    """What of these is flagged once all of them are known."""
    ledger = Ledger()
    for one in answers:
        ledger.add(one, Declaration())
    return {(one.task.id, one.document.steps[0].message) for one in answers if _found(one, ledger)}


def _found(one, ledger):
    try:
        return list(cross_task_payment(one, Declaration(), ledger.of(one)))
    except Inconclusive:
        return []


def rollouts(pays, tasks, words, count, seed=0):
    """Random answers of a policy that knows nothing, each paid as `pays` says."""
    draw = random.Random(seed)
    drawn = [(draw.choice(tasks), draw.choice(words)) for _ in range(count)]
    return [answer(task, said, 1.0 if pays(task, said) else 0.0) for task, said in drawn]


DIGITS = [str(digit) for digit in range(10)]


def test_what_pays_everywhere_is_found_and_right_answers_are_not():
    found = flagged(rollouts(lambda task, said: said in (task, "banana"), DIGITS, [*DIGITS, "banana", "apple"], 600))
    assert found
    assert {said for _, said in found} == {"banana"}


@pytest.mark.parametrize(
    ("pays", "tasks"),
    [
        (lambda task, said: said == task, DIGITS),
        (lambda task, said: said == task[-1], [f"{group} {option}" for group in "abcdefgh" for option in "0123"]),  # multiple choice: many tasks share a key
        (lambda task, said: int(said) % int(task) == 0, ["2", "3", "4", "5", "6", "7"]),  # several right answers, some of several tasks
        (lambda task, said: int(task) < int(said) < 10, DIGITS),
        (lambda task, said: True, DIGITS),  # whatever is paid: another probe's business
        (lambda task, said: False, DIGITS),
    ],
    ids=["one key", "shared keys", "many right answers", "nested", "all", "none"],
)
def test_honest_verifiers_are_left_alone(pays, tasks):
    assert not flagged(rollouts(pays, tasks, [str(number) for number in range(60)], 4000))


def test_an_answer_that_one_task_in_five_refuses_is_still_found_and_one_more_clears_it():
    tasks = DIGITS[:5]
    base = rollouts(lambda task, said: said == task, tasks, DIGITS, 500)
    paid = [answer(task, "banana", 1.0) for task in tasks[:4]]
    assert flagged([*base, *paid, answer("4", "banana", 0.0)])
    assert not flagged([*base, *paid[:3], answer("3", "banana", 0.0), answer("4", "banana", 0.0)])


def test_saying_nothing_is_found_where_it_pays():
    assert {said for _, said in flagged(rollouts(lambda task, said: said in (task, ""), DIGITS, [*DIGITS, "", "apple"], 600))} == {""}


def test_what_is_not_scored_says_nothing():
    base = rollouts(lambda task, said: said == task, DIGITS, DIGITS, 500)
    assert not flagged([*base, *(answer(task, "banana", None) for task in DIGITS)])


def test_where_tasks_share_right_answers_nothing_can_be_told():
    payments = Payments(True, ["a", "b", "c"], frozenset({("a", "b"), ("a", "c"), ("b", "c")}), 3, 0, own=3, shared=2)
    with pytest.raises(Inconclusive, match="2 of 5 answers"):
        list(cross_task_payment(answer("a", "12", 1.0), Declaration(), payments))


def test_episodes_with_tool_calls_are_not_assessed():
    with pytest.raises(NotAssessed, match="final answer"):
        list(cross_task_payment(trajectory(), Declaration(), Ledger().of(trajectory())))


def test_every_two_of_the_named_tasks_are_told_apart():
    pairs = {("a", "b"), ("b", "c"), ("a", "d"), ("b", "d")}
    assert told_apart(["a", "b", "c", "d"], pairs, 3) == ["a", "b", "d"]
    assert told_apart(["a", "b", "c"], pairs, 3) == []
