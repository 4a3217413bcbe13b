"""What is usual in each environment, feature by feature: a robust location and spread, drawn towards the project where little is known."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inspector.anomaly.forest import Floats, Rows

STRENGTH = 20.0  # episodes that an environment needs to weigh as much as the project
CLIP = 8.0
_NORMAL_MAD = 1.4826  # makes these the standard deviation of a bell curve
_NORMAL_TENTHS = 2.5631
_MEDIAN_VARIANCE = np.pi / 2  # of a median, in those of a mean


class Scales(NamedTuple):
    """A row for each environment."""

    location: Floats
    spread: Floats

    def standardised(self, rows: NDArray[Any], environments: NDArray[np.int64]) -> Rows:
        """How many spreads each value lies from what is usual in its environment; 0 where it is not known."""
        with np.errstate(invalid="ignore"):
            z = (rows - self.location[environments]) / self.spread[environments]
        return np.clip(np.nan_to_num(z, nan=0.0, posinf=CLIP, neginf=-CLIP), -CLIP, CLIP).astype(np.float32)


def scales(rows: NDArray[Any], environments: NDArray[np.int64], count: int, floors: Floats, strength: float = STRENGTH) -> Scales:
    """Of `count` environments; NaN in `rows` is a value that was not recorded, and stays where a feature never was. No spread is below its floor.

    An environment of n episodes keeps n / (n + k) of its own. For spreads k is `strength`. For locations it is less where
    environments lie further apart than their episodes: there a project's location says nothing of one environment.
    """
    own, spread, known = _each(rows, environments, count)
    residuals = rows - own[environments]
    pooled = _spread(residuals)
    k = np.minimum(strength, _MEDIAN_VARIANCE * pooled**2 / np.maximum(_between(own), 1e-12))
    location = _mixed(own, _quantile(own, 0.5), known / np.maximum(known + k, 1.0))
    variance = _mixed(spread**2, pooled**2, known / (known + strength))
    return Scales(location, np.fmax(np.sqrt(variance), floors))


def _each(rows: NDArray[Any], environments: NDArray[np.int64], count: int) -> tuple[Floats, Floats, Floats]:
    """(median, spread, recorded values) of each environment."""
    found = [rows[environments == at] for at in range(count)]
    medians = np.array([_quantile(mine, 0.5) for mine in found])
    spreads = np.array([_spread(mine - median) for mine, median in zip(found, medians, strict=True)])
    return medians, spreads, np.array([np.isfinite(mine).sum(axis=0) for mine in found], np.float64)


def _mixed(own: Floats, common: Floats, share: Floats) -> Floats:
    """What is known of one alone, or of all alone, stands as it is."""
    mixed = share * np.nan_to_num(own) + (1.0 - share) * np.nan_to_num(common)
    return np.where(np.isnan(own), common, np.where(np.isnan(common), own, mixed))


def _between(medians: Floats) -> Floats:
    """The variance between environments; without end where there are fewer than three to tell it from, so that each keeps its own."""
    if len(medians) < 3:
        return np.full(medians.shape[1], np.inf)
    return np.nan_to_num(_spread(medians - _quantile(medians, 0.5)) ** 2, nan=0.0)


def _spread(residuals: NDArray[Any]) -> Floats:
    """The larger of two robust spreads: the first is 0 where more than half are equal, the second sees the rest of them."""
    mad = _NORMAL_MAD * _quantile(np.abs(residuals), 0.5)
    tenths = (_quantile(residuals, 0.9) - _quantile(residuals, 0.1)) / _NORMAL_TENTHS
    return np.fmax(mad, tenths)


def _quantile(rows: NDArray[Any], share: float) -> Floats:
    """Of each column, of what is recorded; NaN where nothing is."""
    if not len(rows):
        return np.full(rows.shape[1], np.nan)
    ordered = np.sort(rows, axis=0)  # NaN comes last
    recorded = np.isfinite(ordered).sum(axis=0)
    place = share * np.maximum(recorded - 1, 0)
    low, column = place.astype(np.int64), np.arange(rows.shape[1])
    high = np.minimum(low + 1, np.maximum(recorded - 1, 0))
    value: Floats = ordered[low, column] + (place - low) * (ordered[high, column] - ordered[low, column])
    return np.where(recorded > 0, value, np.nan)
