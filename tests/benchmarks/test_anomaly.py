"""What the anomaly detector is worth on seeded streams, measured through the product's own functions."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.anomaly import average_precision, precisions, run

RUNS = 200


def test_average_precision_counts_as_it_is_defined():
    assert average_precision(np.array([True, False, True]), np.array([3.0, 2.0, 1.0])) == pytest.approx((1 + 2 / 3) / 2)


@pytest.mark.parametrize("apart", [1.0, 3.0])
def test_scores_against_the_environment_find_more_than_raw_ones(apart):
    seen = precisions(0, apart=apart)
    assert seen.forest > seen.raw_forest + 0.1
    assert seen.product > seen.forest


def mean(**scene):
    return np.array([run(seed, **scene) for seed in range(RUNS)]).mean(axis=0)


@pytest.mark.slow
@pytest.mark.parametrize(("past", "share", "environments", "power"), [(10_000, 0.03, 60, 0.7), (10_000, 0.01, 60, 0.5), (3_000, 0.03, 20, 0.6)])
def test_of_what_is_called_unusual_one_in_ten_is_ordinary_at_most(past, share, environments, power):
    false, found, called = mean(past=past, share=share, environments=environments)
    print(f"{past} episodes, {share:.0%} anomalous: {false:.3f} false, {found:.2f} found, {called:.1f} called in 1,000")
    assert false <= 0.10
    assert found >= power


@pytest.mark.slow
def test_unlabelled_anomalies_in_the_past_hide_others_and_call_nothing_ordinary_unusual():
    false, found, _ = mean(past=10_000, share=0.03, confirmed=False)
    assert false <= 0.10
    assert found < 0.2


@pytest.mark.slow
def test_what_was_never_seen_before_is_found_after_a_clean_past():
    false, found, _ = mean(past=10_000, share=0.0, fresh_share=0.03)
    assert false <= 0.10
    assert found >= 0.4


@pytest.mark.slow
def test_where_nothing_happens_hardly_anything_is_called_unusual():
    assert mean(past=10_000, share=0.0)[2] <= 0.4  # in 1,000; one in n + 1 = 5,900 is to be expected
