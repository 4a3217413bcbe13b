"""What a proved exploit is paid."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from inspector.override import bound, gained, replacement
from inspector.task import UNDECLARED, Declaration, RewardDeclaration

numbers = st.floats(-100, 100)
recalls = st.floats(0, 1)


def declared(low=0.0, high=1.0, penalty=None):
    return Declaration(reward=RewardDeclaration(min=low, max=high, penalty_min=penalty))


@pytest.mark.parametrize(
    ("declaration", "honest_mean", "recall", "value"),
    [
        (declared(), 0.5, 0.9, 0.0),  # bound 0.44: worth a failure, though 0.44 were allowed
        (declared(penalty=-1.0), 0.5, 0.9, -1.0),  # a penalty that is declared is taken: it loses against failures too
        (declared(), 0.1, 0.9, 0.0),  # the bound is 0 but for rounding
        (declared(), 0.05, 0.9, None),  # bound -0.06: nothing in the range is low enough
        (declared(penalty=-1.0), 0.05, 0.9, -1.0),
        (declared(penalty=-0.01), 0.05, 0.9, None),  # the penalty is not low enough either
        (declared(), 0.5, 0.5, 0.0),
        (declared(), 0.4, 0.5, None),
        (declared(penalty=-1.0), 0.4, 0.5, -1.0),
        (declared(), None, 0.9, None),  # an unknown honest mean is taken for the minimum
        (declared(penalty=-1.0), None, 0.9, -1.0),
        (declared(), None, 1.0, 0.0),
        (declared(), 0.5, 0.0, None),  # never caught
        (declared(0, 100), 30, 0.9, 0.0),  # a missed hack is paid 100, not 1
        (declared(0, 100), 5, 0.9, None),
        (declared(-1, 0), -0.5, 0.9, -1.0),
        (declared(low=None), 0.5, 0.9, None),
        (declared(high=None), 0.5, 0.9, None),
        (declared(2.0, 1.0), 0.5, 0.9, None),
        (UNDECLARED, 0.5, 0.9, None),
        (declared(), math.nan, 0.9, None),
    ],
)
def test_an_exploit_is_worth_a_failure_or_the_penalty_or_cannot_be_overridden(declaration, honest_mean, recall, value):
    reward = declaration.reward.max if declaration.reward.max is not None else 1.0
    got = replacement(declaration, reward, honest_mean=honest_mean, recall=recall)
    assert got == value


def test_the_bound_on_a_unit_range_is_the_known_formula():
    m, q = 0.3, 0.8
    assert bound(m, q, 1.0) == pytest.approx((m - (1 - q)) / q)


@given(numbers, numbers, st.none() | numbers, numbers, st.none() | numbers, recalls)
def test_it_lies_in_the_declared_range_never_raises_and_makes_the_exploit_lose(low, high, penalty, reward, mean, recall):
    assume(low <= high)
    value = replacement(declared(low, high, penalty), reward, honest_mean=mean, recall=recall)
    if value is None:
        return
    honest = low if mean is None else mean
    missed = max(high, reward)
    assert (low if penalty is None else min(penalty, low)) <= value <= high
    assert value <= reward
    assert value <= bound(honest, recall, missed)
    assert (1 - recall) * missed + recall * value <= honest + 1e-9 * max(1.0, abs(honest), abs(missed))


@given(numbers, numbers, st.none() | numbers, recalls, recalls)
def test_a_lower_recall_never_gives_a_higher_pay(mean, penalty, reward, one, other):
    low, high = sorted((one, other))
    declaration = declared(penalty=penalty)
    paid = 1.0 if reward is None else reward
    unsure, sure = (replacement(declaration, paid, honest_mean=min(mean, 1.0), recall=q) for q in (low, high))
    assert unsure is None or (sure is not None and unsure <= sure)


@pytest.mark.parametrize(
    ("declaration", "reward", "earned"),
    [(declared(), 0.0, False), (declared(), 0.1, True), (UNDECLARED, 0.0, False), (UNDECLARED, 1.0, True), (declared(-1, 1), 0.0, True)],
)
def test_an_exploit_that_got_the_minimum_gained_nothing(declaration, reward, earned):
    assert gained(declaration, reward) is earned
