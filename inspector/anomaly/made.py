"""A model written by hand, for the examples of a check and for tests: one episode is usual, and what lies near it ordinary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from inspector.anomaly.features import COUNT, FLOORS, matrix
from inspector.anomaly.forest import Forest
from inspector.anomaly.model import BASELINE, Model, Normal, Place
from inspector.anomaly.oddness import Oddness
from inspector.anomaly.scaling import Scales
from inspector.check import Baselines
from inspector.trajectory import Posted, Trajectory


def model_around(posted: Mapping[str, Any], *, spread: float = 0.5) -> Model:
    """Of the environment in which this was posted. A thousand ordinary episodes lay at most six spreads from it."""
    typed = msgspec.convert(posted, Posted)
    usual = Trajectory(typed, typed.trajectory)
    location = matrix([usual])
    scales = Scales(location, np.maximum(np.full_like(location, spread), FLOORS))
    oddness = Oddness(_blind(), np.eye(COUNT), np.zeros(2), np.ones(2))
    place: Place = (usual.environment.id, usual.environment.version)
    return Model((place,), scales, oddness, np.linspace(3.0, 7.0, 1000), np.linspace(0.01, 1.0, 90), 1500, 1)


def baselines_around(posted: Mapping[str, Any]) -> Baselines:
    """The same, as a check asks for it."""
    return Baselines({BASELINE: Normal(model_around(posted), 0)})


def _blind() -> Forest:
    """Gives every episode the same score."""
    return Forest(np.zeros((1, 1), np.int16), np.full((1, 1), np.inf, np.float32), np.zeros((1, 2)), 1.0)
