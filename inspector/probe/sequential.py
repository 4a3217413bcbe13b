"""Decides with as few runs as the answer needs: sequential tests, posteriors, intervals, pass@k and what a null result could have seen."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import comb, log

ALPHA = 0.05
CAP = 64  # rollouts of the three-way test
FLAKE_SOUND, FLAKE_WRONG = 0.999, 0.9  # pass rates of a reference that the flake test tells apart
FLAKE_RUNS = 29  # clean runs at which it accepts
RUNS_AT_ONCE = 5  # of a reference, at once


class Standing(StrEnum):
    """What the three-way test says of a policy on a task."""

    OPEN = "open"  # more runs
    DEAD = "dead"
    USABLE = "usable"
    EASY = "easy"
    UNDECIDED = "undecided"  # at the cap: treat as usable, with a low weight


@dataclass(slots=True)
class Sprt:
    """Wald's test of two pass rates; `score` is the log likelihood ratio of `above` to `below`."""

    below: float
    above: float
    alpha: float = ALPHA
    score: float = 0.0

    def add(self, passed: bool) -> None:
        """Count one run."""
        above, below = (self.above, self.below) if passed else (1 - self.above, 1 - self.below)
        self.score += log(above / below)

    @property
    def side(self) -> int:
        """-1 where the lower rate is accepted, 1 where the higher one is, 0 while neither."""
        border = log((1 - self.alpha) / self.alpha)
        return int(self.score >= border) - int(self.score <= -border)


class ThreeWay:
    """The pair of tests of Sobel and Wald: dead below about 0.02, easy above about 0.98, usable between."""

    def __init__(self, cap: int = CAP) -> None:
        self.runs = self.passed = 0
        self._cap = cap
        self._low, self._high = Sprt(0.02, 0.15), Sprt(0.85, 0.98)
        self._low_side = self._high_side = 0

    def add(self, passed: bool) -> Standing:
        """Count one rollout and say where the task stands. Each test keeps the side that it reached first."""
        self.runs += 1
        self.passed += passed
        self._low.add(passed)
        self._high.add(passed)
        self._low_side = self._low_side or self._low.side
        self._high_side = self._high_side or self._high.side
        return self.standing

    @property
    def standing(self) -> Standing:
        """As of the runs so far."""
        if self._low_side < 0:
            return Standing.DEAD
        if self._high_side > 0:
            return Standing.EASY
        if self._low_side > 0 and self._high_side < 0:
            return Standing.USABLE
        return Standing.UNDECIDED if self.runs >= self._cap else Standing.OPEN


def flake_test() -> Sprt:
    """Of a reference: at 1 it is paid steadily (29 clean runs), at -1 it is not."""
    return Sprt(FLAKE_WRONG, FLAKE_SOUND)


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate with its interval."""

    mean: float
    low: float
    high: float


def posterior(passed: int, runs: int, prior: tuple[float, float] = (0.5, 0.5), level: float = 0.95) -> Rate:
    """The Beta posterior of a pass rate, with its central interval; Jeffreys' prior unless told otherwise."""
    a, b = prior[0] + passed, prior[1] + runs - passed
    tail = (1 - level) / 2
    return Rate(a / (a + b), _quantile(a, b, tail), _quantile(a, b, 1 - tail))


def clopper_pearson(passed: int, runs: int, level: float = 0.95) -> Rate:
    """The observed rate with its exact interval; without a run all is possible."""
    if not runs:
        return Rate(0.0, 0.0, 1.0)
    tail = (1 - level) / 2
    low = _quantile(passed, runs - passed + 1, tail) if passed else 0.0
    high = _quantile(passed + 1, runs - passed, 1 - tail) if passed < runs else 1.0
    return Rate(passed / runs, low, high)


def pass_at_k(passed: int, runs: int, k: int, level: float = 0.95) -> Rate:
    """The unbiased estimate of the chance that one of k attempts passes, with the interval that follows from the exact one of the rate."""
    if not 1 <= k <= runs:
        raise ValueError(f"pass@{k} needs at least {k} runs, not {runs}")
    rate = clopper_pearson(passed, runs, level)
    return Rate(1 - comb(runs - passed, k) / comb(runs, k), 1 - (1 - rate.low) ** k, 1 - (1 - rate.high) ** k)


def smallest_seen(runs: int, level: float = 0.95) -> float:
    """The smallest rate of an event that `runs` runs would have shown at least once with this chance; 1 without a run."""
    return 1 - (1 - level) ** (1 / runs) if runs else 1.0


def _quantile(a: float, b: float, share: float) -> float:
    """Of the Beta distribution."""
    from scipy.special import betaincinv  # half a second that only who needs an interval pays

    return float(betaincinv(a, b, share))
