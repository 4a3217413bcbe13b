"""Learns a model from the episodes of a project: the older third of each environment teaches, the newer two are scored.

So what an episode is compared with did not shape the scale it is compared on, and lies nearer to it in time. Only what a
person confirmed as unfit is left out of both: a filter that chose its own company would call ever more unusual.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inspector.anomaly import conformal
from inspector.anomaly.features import FLOORS
from inspector.anomaly.forest import Floats
from inspector.anomaly.model import Model, Place
from inspector.anomaly.oddness import Fit, Oddness
from inspector.anomaly.scaling import Scales, scales

NEEDED = 1500  # episodes of a project, in environments that are known well enough
NEEDED_OF_ENVIRONMENT = 30
MOST = 20_000  # episodes that a model is learnt from; of environments with many, the newest


class Window(NamedTuple):
    """The last episodes of one environment version, in the order in which they came."""

    place: Place
    rows: Floats  # transformed features
    order: NDArray[Any]  # sorts the episodes of all environments together
    confirmed: NDArray[np.bool_]  # unfit, by a person's word


def learn(windows: Sequence[Window], fit: Fit, *, floors: Floats = FLOORS) -> Model | None:
    """A model of all environments that are known well enough; None where those are too few."""
    most = max(NEEDED_OF_ENVIRONMENT, MOST // max(1, len(windows)))
    known = [_newest(window, most) for window in windows if np.count_nonzero(~window.confirmed) >= NEEDED_OF_ENVIRONMENT]
    if sum(np.count_nonzero(~window.confirmed) for window in known) < NEEDED:
        return None
    usual, oddness = _taught([_part(window, slice(None, len(window.rows) // 3)) for window in known], fit, floors)
    scored = _scored([_part(window, slice(len(window.rows) // 3, None)) for window in known], usual, oddness)
    count = conformal.peers_of(int(np.count_nonzero(~scored.confirmed)))
    ordinary = np.sort(scored.scores[:-count][~scored.confirmed[:-count]])
    peers = np.sort(conformal.p_values(scored.scores[-count:], ordinary))
    return Model(tuple(window.place for window in known), usual, oddness, ordinary, peers, sum(len(window.rows) for window in known))


def _newest(window: Window, most: int) -> Window:
    return _part(window, slice(-most, None))


def _part(window: Window, part: slice) -> Window:
    return Window(window.place, window.rows[part], window.order[part], window.confirmed[part])


def _taught(older: Sequence[Window], fit: Fit, floors: Floats) -> tuple[Scales, Oddness]:
    rows = np.concatenate([window.rows[~window.confirmed] for window in older])
    environments = np.repeat(np.arange(len(older)), [np.count_nonzero(~window.confirmed) for window in older])
    usual = scales(rows, environments, len(older), floors)
    return usual, Oddness.fitted(usual.standardised(rows, environments), fit)


class _Scored(NamedTuple):
    scores: Floats
    confirmed: NDArray[np.bool_]


def _scored(newer: Sequence[Window], usual: Scales, oddness: Oddness) -> _Scored:
    """In the order in which they came."""
    environments = np.repeat(np.arange(len(newer)), [len(window.rows) for window in newer])
    order = np.argsort(np.concatenate([window.order for window in newer]), kind="stable")
    scores = oddness.score(usual.standardised(np.concatenate([window.rows for window in newer]), environments))
    return _Scored(scores[order], np.concatenate([window.confirmed for window in newer])[order])
