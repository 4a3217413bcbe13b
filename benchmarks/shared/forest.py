"""One isolation forest of 100 trees, fitted on shapes drawn from fixed distributions: the same in every process."""

from __future__ import annotations

from functools import cache

import numpy as np
from sklearn.ensemble import IsolationForest

from benchmarks.shared.features import features
from benchmarks.shared.texts import Shape, StepShape

EPISODES = 1024


@cache
def fitted() -> IsolationForest:
    """Scores are `-fitted().score_samples(matrix)`: the higher, the odder."""
    random = np.random.default_rng(11)
    return IsolationForest(n_estimators=100, max_samples=256, random_state=7).fit(np.array([features(_ordinary(random)) for _ in range(EPISODES)]))


def _ordinary(random: np.random.Generator) -> Shape:
    """An episode of a few or of many steps, with little or much to see in each."""
    many = random.random() < 0.4
    count = int(np.clip(np.exp(random.normal(6.0 if many else 3.0, 0.25)), 3, 900))
    seen = np.exp(random.normal(9.15 if many else 6.0, 0.25))
    lengths = [np.maximum(1, random.normal(mean, spread, count)).astype(int).tolist() for mean, spread in ((70, 20), (140, 28), (77, 20), (seen, seen / 4))]
    steps = [StepShape(True, m, r, a, o, 1) for m, r, a, o in zip(*lengths, strict=True)]
    steps[0] = StepShape(False, int(seen) + 400, 0, 0, 0, 0)
    return Shape(steps, count - 1, float(random.random() < 0.4))
