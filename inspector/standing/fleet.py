"""What holds for all environment versions of an installation together: how strict the test is, and how much may be quarantined in an hour."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import NamedTuple

from inspector.standing.rules import DEFAULT, Rules


def bar(scores: Sequence[float], rules: Rules = DEFAULT) -> float:
    """The score that quarantines, where so many environment versions are tested at once: Benjamini and Hochberg at the rules' rate.

    exp(-score) bounds the probability that chance brought a score so far since it was last 0, and takes the place of a p-value.
    """
    ranked = sorted(scores, reverse=True)
    borders = [log(len(ranked) / (rules.fdr * rank)) for rank in range(1, len(ranked) + 1)]
    passing = [border for score, border in zip(ranked, borders, strict=True) if score >= border]
    return max(rules.bar, passing[-1] if passing else borders[0] if borders else 0.0)


class Hour(NamedTuple):
    """The last hour of an installation."""

    weight: float  # posted trajectories
    moved: int  # environment versions that were quarantined without a person
    share: float  # of the weight that they had


def allows(hour: Hour, weight: float, rules: Rules = DEFAULT) -> bool:
    """Whether an environment version of this weight may be quarantined without a person; one an hour always may."""
    return hour.moved == 0 or hour.share + share(hour, weight) <= rules.fleet_share


def share(hour: Hour, weight: float) -> float:
    """Of the hour's training weight; nothing where nothing was posted."""
    return weight / hour.weight if hour.weight > 0 else 0.0
