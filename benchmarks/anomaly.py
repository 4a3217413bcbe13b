"""Measures the anomaly detector on seeded streams, through the product's own functions: `python -m benchmarks.anomaly`.

60 environments of unlike scale and location, ten features, five kinds of anomalies. Printed are the average precision of
scores on raw and on standardised features, and what share of what is called unusual is ordinary.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from inspector.anomaly.fitting import fit
from inspector.anomaly.learning import Window, learn
from inspector.anomaly.model import Model
from inspector.anomaly.oddness import Oddness
from inspector.anomaly.scaling import scales

ENVIRONMENTS = 60
FEATURES = 10
FLOORS = np.full(FEATURES, 0.1)
RATE = 0.10


class World(NamedTuple):
    """Where the environments lie, and how wide they are."""

    location: np.ndarray
    spread: np.ndarray


class Stream(NamedTuple):
    """Episodes in the order in which they come."""

    rows: np.ndarray
    environments: np.ndarray
    anomalous: np.ndarray


class Found(NamedTuple):
    """What one run saw."""

    false: float  # share of what was called unusual
    power: float  # share of the anomalies that was found
    called: int


def world(random: np.random.Generator, *, apart: float = 1.0, environments: int = ENVIRONMENTS) -> World:
    return World(random.normal(size=(environments, FEATURES)) * apart, np.exp(random.normal(size=(environments, FEATURES)) * 0.4))


def stream(random: np.random.Generator, where: World, episodes: int, share: float) -> Stream:
    """Ordinary episodes vary together in four features; a share of all is anomalous."""
    environments = random.integers(0, len(where.location), episodes)
    rows = random.normal(size=(episodes, FEATURES))
    rows[:, :4] = 0.7 * rows[:, :4] + 0.7 * random.normal(size=(episodes, 1))
    anomalous = random.random(episodes) < share
    for at in np.flatnonzero(anomalous):
        _KINDS[random.integers(len(_KINDS))](random, rows[at])
    return Stream(rows * where.spread[environments] + where.location[environments], environments, anomalous)


def _one_extreme(random: np.random.Generator, row: np.ndarray) -> None:
    row[random.integers(FEATURES)] += random.choice([-1, 1]) * 6.0


def _loop(random: np.random.Generator, row: np.ndarray) -> None:
    row[:3] += 4.0


def _too_short(random: np.random.Generator, row: np.ndarray) -> None:
    row[4:7] -= 3.5


def _wild(random: np.random.Generator, row: np.ndarray) -> None:
    row *= 3.0


def _shared_hack(random: np.random.Generator, row: np.ndarray) -> None:
    row[7:] += random.normal(4.0, 0.5, 3)


_KINDS = (_one_extreme, _loop, _too_short, _wild, _shared_hack)


# --- average precision -----------------------------------------------------------------------------------------------


class Precisions(NamedTuple):
    """Average precision by what was scored and how."""

    raw_forest: float
    forest: float  # standardised, as the next one
    product: float


def precisions(seed: int, *, apart: float = 1.0) -> Precisions:
    """Of 6,000 episodes, 3 % of them anomalous, all seen by the detectors."""
    random = np.random.default_rng(seed)
    seen = stream(random, world(random, apart=apart), 6000, 0.03)
    usual = scales(seen.rows, seen.environments, ENVIRONMENTS, FLOORS).standardised(seen.rows, seen.environments)
    raw, odd = seen.rows.astype(np.float32), Oddness.fitted(usual, fit)
    return Precisions(*(average_precision(seen.anomalous, scores) for scores in (fit(raw).score(raw), odd.forest.score(usual), odd.score(usual))))


def average_precision(anomalous: np.ndarray, scores: np.ndarray) -> float:
    """The mean, over the anomalies, of the share of anomalies among all that score as high."""
    ordered = anomalous[np.argsort(-scores, kind="stable")]
    return float((np.cumsum(ordered) / np.arange(1, len(ordered) + 1))[ordered].mean())


# --- false discoveries -----------------------------------------------------------------------------------------------


def model(seen: Stream, *, confirmed: bool) -> Model:
    """As the service learns it; with the anomalies of the past confirmed by reviewers, or with none of them."""
    order = np.arange(len(seen.rows))
    windows = []
    for at in range(int(seen.environments.max()) + 1):
        mine = seen.environments == at
        windows.append(Window((f"team/{at}", "1"), seen.rows[mine], order[mine], seen.anomalous[mine] & confirmed))
    learnt = learn(windows, fit, floors=FLOORS)
    assert learnt is not None
    return learnt


def judged(learnt: Model, fresh: Stream) -> Found:
    """What the check would say of fresh episodes."""
    rows = np.array([learnt.environments.index((f"team/{at}", "1")) for at in fresh.environments])
    p = learnt.p_values(learnt.standardised(fresh.rows, rows))
    called = p <= learnt.cutoff(RATE)
    count = int(called.sum())
    return Found(float((called & ~fresh.anomalous).sum()) / max(1, count), float((called & fresh.anomalous).sum()) / max(1, fresh.anomalous.sum()), count)


def run(seed: int, *, past: int, share: float, fresh_share: float | None = None, confirmed: bool = True, environments: int = ENVIRONMENTS) -> Found:
    """A past to learn from, then 1,000 fresh episodes."""
    random = np.random.default_rng(seed)
    where = world(random, environments=environments)
    learnt = model(stream(random, where, past, share), confirmed=confirmed)
    return judged(learnt, stream(random, where, 1000, share if fresh_share is None else fresh_share))


SCENES: dict[str, dict[str, Any]] = {
    "10,000 episodes, 3 % anomalous, reviewed": {"past": 10_000, "share": 0.03},
    "10,000 episodes, 1 % anomalous, reviewed": {"past": 10_000, "share": 0.01},
    "3,000 episodes, 3 % anomalous, reviewed, 20 environments": {"past": 3_000, "share": 0.03, "environments": 20},
    "10,000 episodes, 3 % anomalous, nobody reviewed": {"past": 10_000, "share": 0.03, "confirmed": False},
    "10,000 clean episodes, then 3 % anomalous": {"past": 10_000, "share": 0.0, "fresh_share": 0.03},
    "10,000 clean episodes, and nothing happens": {"past": 10_000, "share": 0.0},
}


def main(runs: int) -> None:
    for apart in (1.0, 3.0):
        raw, forest, product = np.array([precisions(seed, apart=apart) for seed in range(5)]).mean(axis=0)
        print(
            f"average precision, environments {apart:g} spreads apart: raw forest {raw:.2f}, standardised {forest:.2f}, with the distance {product:.2f}",
            flush=True,
        )
    for name, scene in SCENES.items():
        found = np.array([run(seed, **scene) for seed in range(runs)])
        false, power, called = found.mean(axis=0)
        print(f"{name}: {false:.3f} of what is called unusual is ordinary, {power:.2f} of the anomalies found, {called:.1f} called in 1,000", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
