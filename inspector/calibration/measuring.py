"""Whether a probability means what it says: log loss, Brier score and expected calibration error, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inspector.calibration.labels import Label, weights
from inspector.calibration.model import SURE, Interval

Vector = NDArray[np.float64]
BINS = 10  # of equal width
RESAMPLED = 200
SEED = 20_261_201


class Truth(NamedTuple):
    """Labels as the measures want them."""

    bad: Vector  # 1.0 or 0.0
    weight: Vector
    cluster: NDArray[np.intp]  # numbered from 0


def truth(labels: Sequence[Label], *, truncated: bool = False) -> Truth:
    """The answers, their weights, and what belongs together."""
    _, cluster = np.unique([label.cluster for label in labels], return_inverse=True)
    return Truth(np.array([label.bad for label in labels], float), np.array(weights(labels, truncated=truncated)), cluster)


def losses(probability: Vector, bad: Vector) -> Vector:
    """The log loss of each, in nats."""
    kept = np.clip(probability, SURE, 1.0 - SURE)
    return -(bad * np.log(kept) + (1.0 - bad) * np.log(1.0 - kept))


def log_loss(probability: Vector, known: Truth) -> float:
    """Weighted mean, in nats."""
    return float(np.average(losses(probability, known.bad), weights=known.weight))


def brier(probability: Vector, known: Truth) -> Interval:
    """The mean squared difference of probability and answer."""
    return _resampled(((probability - known.bad) ** 2)[:, None], known)


def ece(probability: Vector, known: Truth) -> Interval:
    """Over ten bins, the mean difference of what was said and what was so. Few labels make it look worse than it is."""
    bins = np.clip((probability * BINS).astype(int), 0, BINS - 1)
    return _resampled(np.where(np.arange(BINS) == bins[:, None], (probability - known.bad)[:, None], 0.0), known)


def _resampled(parts: Vector, known: Truth) -> Interval:
    """The sum of the absolute column means, with 2.5 % and 97.5 % quantiles over resampled clusters."""
    clusters = int(known.cluster.max()) + 1
    sums, total = np.zeros((clusters, parts.shape[1])), np.zeros(clusters)
    np.add.at(sums, known.cluster, parts * known.weight[:, None])
    np.add.at(total, known.cluster, known.weight)
    random = np.random.default_rng(SEED)
    drawn = (np.bincount(random.integers(0, clusters, clusters), minlength=clusters).astype(float) for _ in range(RESAMPLED))
    again = [np.abs(times @ sums).sum() / (times @ total) for times in drawn]
    low, high = np.quantile(again, [0.025, 0.975])
    return Interval(float(np.abs(sums.sum(axis=0)).sum() / total.sum()), float(low), float(high))


class Difference(NamedTuple):
    """How much more one loses than another on the same labels; negative where it loses less."""

    mean: float
    error: float  # standard error of the mean, over clusters


def difference(one: Vector, other: Vector, known: Truth) -> Difference:
    """Of the log losses of two probabilities."""
    apart = (losses(one, known.bad) - losses(other, known.bad)) * known.weight
    mean = float(apart.sum() / known.weight.sum())
    centred = np.zeros(int(known.cluster.max()) + 1)
    np.add.at(centred, known.cluster, apart - mean * known.weight)
    return Difference(mean, float(np.sqrt((centred**2).sum()) / known.weight.sum()))
