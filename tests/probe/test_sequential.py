"""The sequential decisions against the published tables of their simulation."""

from __future__ import annotations

import random
from math import log

import pytest

from inspector.probe.sequential import Standing, ThreeWay, clopper_pearson, flake_test, pass_at_k, posterior, smallest_seen

RUNS = 1500
WANTED = [  # pass rate, mean runs, the right answer, its share
    (0.0, 21, Standing.DEAD, 1.0),
    (0.01, 24, Standing.DEAD, 0.987),
    (0.02, 28, Standing.DEAD, 0.933),
    (0.1, 28, Standing.USABLE, 0.71),
    (0.2, 12.8, Standing.USABLE, 0.987),
    (0.3, 7.8, Standing.USABLE, 0.999),
    (0.5, 5.6, Standing.USABLE, 1.0),
    (0.98, 28, Standing.EASY, 0.93),
]


def rollouts(rate: float, dice: random.Random) -> tuple[Standing, int]:
    test = ThreeWay()
    while test.add(dice.random() < rate) is Standing.OPEN:
        pass
    return test.standing, test.runs


@pytest.mark.parametrize(("rate", "mean", "right", "share"), WANTED)
def test_the_three_way_test_needs_and_errs_as_simulated(rate: float, mean: float, right: Standing, share: float) -> None:
    dice = random.Random(7)
    ends = [rollouts(rate, dice) for _ in range(RUNS)]
    assert sum(runs for _, runs in ends) / RUNS == pytest.approx(mean, rel=0.1, abs=0.5)
    assert sum(standing is right for standing, _ in ends) / RUNS == pytest.approx(share, abs=0.035)


def test_the_three_way_test_ends_at_its_cap() -> None:
    test = ThreeWay(cap=6)
    standings = [test.add(passed) for passed in (False, False, False, True, False, False)]
    assert standings[-2:] == [Standing.OPEN, Standing.UNDECIDED]


def test_a_steady_reference_is_accepted_after_29_clean_runs() -> None:
    test = flake_test()
    sides = []
    for _ in range(29):
        test.add(True)
        sides.append(test.side)
    assert sides == [0] * 28 + [1]


def test_a_reference_that_fails_each_fifth_time_is_rejected_in_about_five_runs() -> None:
    dice, needed = random.Random(3), []
    for _ in range(RUNS):
        test, runs = flake_test(), 0
        while test.side == 0:
            test.add(dice.random() >= 0.2)
            runs += 1
        needed.append(runs)
    assert sum(needed) / RUNS == pytest.approx(5.1, abs=0.5)


def test_pass_at_k_is_unbiased_where_the_plain_estimate_is_not() -> None:
    dice = random.Random(11)
    counts = [sum(dice.random() < 0.05 for _ in range(16)) for _ in range(20_000)]
    truth = 1 - 0.95**8
    assert sum(pass_at_k(count, 16, 8).mean for count in counts) / len(counts) == pytest.approx(truth, abs=0.006)
    assert sum(1 - (1 - count / 16) ** 8 for count in counts) / len(counts) < truth - 0.04


def test_pass_at_k_lies_in_its_interval_and_wants_enough_runs() -> None:
    rate = pass_at_k(3, 10, 4)
    assert 0 < rate.low < rate.mean < rate.high < 1
    with pytest.raises(ValueError, match="pass@5 needs at least 5 runs, not 4"):
        pass_at_k(1, 4, 5)


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.9])
def test_an_exact_interval_holds_the_truth_at_least_as_often_as_it_says(rate: float) -> None:
    dice = random.Random(5)
    held = 0
    for _ in range(RUNS):
        found = clopper_pearson(sum(dice.random() < rate for _ in range(20)), 20)
        held += found.low <= rate <= found.high
    assert held / RUNS >= 0.94


def test_without_a_run_all_is_possible() -> None:
    assert clopper_pearson(0, 0) == (clopper_pearson(0, 0).__class__)(0.0, 0.0, 1.0)
    assert smallest_seen(0) == 1.0


@pytest.mark.parametrize(("runs", "rate"), [(5, 0.45), (29, 0.098), (59, 0.05), (299, 0.01)])
def test_a_null_result_says_what_it_could_have_seen(runs: int, rate: float) -> None:
    assert smallest_seen(runs) == pytest.approx(rate, rel=0.03)


def test_a_posterior_moves_with_its_prior() -> None:
    assert posterior(0, 5).mean == pytest.approx(0.5 / 6)
    assert posterior(0, 5, (5, 5)).mean > posterior(0, 5).mean
    assert posterior(3, 5).low < 0.6 < posterior(3, 5).high
    assert log(posterior(0, 50).high) < log(0.1)
