"""How several pieces of evidence add up to one probability.

The combination is noisy-OR (Pearl, Probabilistic Reasoning in Intelligent Systems, 1988, §4.3.2): each check is a cause
that alone makes the trajectory unusable with probability precision x score, independently of the others, and `leak` is
the probability that it is unusable although no check saw anything:

    p = 1 - (1 - leak) * product over checks of (1 - precision * score)

Without a finding p is the leak. Correlated checks make p too high; that costs calibration, hardly the ranking.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Annotated, NamedTuple

import msgspec

from inspector.errors import MissingExtra

LOWER = 0.05  # the quantile that we call the lower bound: one-sided, 95 %
DIGITS = 12  # rounds away what the subtraction from 1 leaves behind, so that 0.8 reaches a threshold of 0.8

Shape = Annotated[float, msgspec.Meta(gt=0, le=1e12)]


class Beta(NamedTuple):
    """A share known from `a` confirmations and `b` refutations; both may be pseudo-counts."""

    a: Shape
    b: Shape

    @property
    def mean(self) -> float:
        return self.a / (self.a + self.b)

    @property
    def lower(self) -> float:
        """The 5 % quantile. Raises MissingExtra where scipy is not installed."""
        return _quantile(self.a, self.b, LOWER)

    def updated(self, right: float, wrong: float) -> Beta:
        """The posterior after so many more confirmations and refutations."""
        return Beta(self.a + right, self.b + wrong)


@lru_cache(maxsize=4096)
def _quantile(a: float, b: float, share: float) -> float:
    try:
        from scipy.special import betaincinv  # here, because importing it takes longer than most audits
    except ImportError as error:
        raise MissingExtra("the lower bound of a precision", "local") from error
    return float(betaincinv(a, b, share))


def bounded(score: float) -> float:
    """The score in [0, 1]; one that is not a number is taken for the worst, or a careless check would clear what it flagged."""
    return score if 0.0 <= score <= 1.0 else 0.0 if score < 0.0 else 1.0


def heaviest(weights: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Each check's largest weight, since ten findings of one check are one opinion."""
    largest: dict[str, float] = {}
    for check, weight in weights:
        largest[check] = max(weight, largest.get(check, 0.0))
    return largest


def noisy_or(leak: float, weights: Mapping[str, float]) -> float:
    """The probability that at least one of the checks is right, or that something is wrong that none sees.

    Weights lie in [0, 1]. The order is that of the names: in floating point too, more evidence never lowers the answer.
    """
    left = 1.0 - leak
    for check in sorted(weights):
        left *= 1.0 - weights[check]
    return round(1.0 - left, DIGITS)
