"""Noisy-OR and the precision of checks."""

import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betainc

from inspector.combine import Beta, bounded, heaviest, noisy_or
from inspector.errors import MissingExtra

shares = st.floats(0, 1)
weights = st.dictionaries(st.text(max_size=3), shares, max_size=8)


def test_without_findings_the_probability_is_the_leak():
    assert noisy_or(0.05, {}) == 0.05


@pytest.mark.parametrize(
    ("found", "probability"),
    [({"a": 0.8}, 0.81), ({"a": 0.2}, 0.24), ({"a": 0.2, "b": 0.2}, 0.392), ({"a": 0.95}, 0.9525), ({"a": 1.0}, 1.0), ({"a": 0.0}, 0.05)],
)
def test_noisy_or_by_hand(found, probability):
    assert noisy_or(0.05, found) == probability


@given(shares, weights)
def test_it_is_a_probability_not_below_the_leak_or_any_weight(leak, found):
    p = noisy_or(leak, found)
    assert 0 <= p <= 1
    assert p >= max([leak, *found.values()]) - 1e-12


@given(shares, weights, st.text(max_size=3), shares)
def test_more_evidence_never_lowers_it(leak, found, check, weight):
    assert noisy_or(leak, found | {check: max(weight, found.get(check, 0.0))}) >= noisy_or(leak, found)


def test_ten_findings_of_one_check_are_one_opinion():
    assert heaviest([("a", 0.1)] * 10 + [("a", 0.3), ("b", 0.2), ("a", 0.2)]) == {"a": 0.3, "b": 0.2}


@pytest.mark.parametrize(("score", "taken"), [(0.5, 0.5), (0.0, 0.0), (7.0, 1.0), (-1.0, 0.0), (math.nan, 1.0), (math.inf, 1.0)])
def test_a_score_outside_its_range_is_bounded(score, taken):
    assert bounded(score) == taken


@given(st.floats(0.1, 1e4), st.floats(0.1, 1e4))
def test_the_lower_bound_leaves_a_twentieth_below(a, b):
    assert betainc(a, b, Beta(a, b).lower) == pytest.approx(0.05, abs=1e-6)


def test_one_defaults_lower_bound_by_hand():
    assert Beta(19, 1).lower == pytest.approx(0.05 ** (1 / 19))  # the distribution function of Beta(n, 1) is x ** n


def test_without_scipy_the_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    with pytest.raises(MissingExtra, match=r"inspector\[local\]"):
        _ = Beta(3.25, 1.75).lower


def test_labels_move_a_precision():
    assert Beta(8, 2).updated(90, 0) == Beta(98, 2)
    assert Beta(98, 2).mean == 0.98


def test_judging_loads_no_scipy_until_a_lower_bound_is_asked_for():
    code = "import sys, inspector.policy as p; p.load(); sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
