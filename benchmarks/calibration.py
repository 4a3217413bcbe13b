"""Measures what labels are worth, through the product's own functions: `python -m benchmarks.calibration`.

Twelve checks in three families, correlated within each beyond what the truth explains, on a stream with 5 % faults: log loss
on 20,000 fresh episodes of the noisy-OR as the policy has it, of the noisy-OR with precisions from labels, of Platt's two
numbers on it, and of the regression; beside them scikit-learn's own regression and isotonic regression as peers.

Then the same where half of the faults are of kinds that no check sees, and people look at what was flagged, as they do:
labels of the queue alone, those and what chance picked without weights, and with them.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from inspector.calibration.fitting import fit, predicted, stage_for
from inspector.calibration.labels import Label, Seen
from inspector.calibration.measuring import brier, ece, log_loss, truth
from inspector.calibration.model import Model, Stage
from inspector.combine import Beta
from inspector.verdict import Cause

CHECKS, FAMILIES = 12, 3
LEAK, BASE = 0.05, 0.05
SHARED = 0.6  # of a check's noise that its family shares
PRIOR = Beta(8, 2)
FALSE_ALARMS = 0.03
FRESH = 20_000


class World(NamedTuple):
    """How well each check sees a fault, and from where on it speaks."""

    strength: np.ndarray
    threshold: float


def world(random: np.random.Generator) -> World:
    return World(random.uniform(0.8, 2.6, CHECKS), 1.88)  # the upper 3 % of a normal


def stream(random: np.random.Generator, where: World, episodes: int, unseen: float = 0.0) -> list[Label]:
    """Labelled episodes as they come, each looked at; a share of the faults is of kinds that no check sees."""
    bad = random.random(episodes) < BASE
    seeable = bad & (random.random(episodes) >= unseen)
    family = np.repeat(random.normal(size=(episodes, FAMILIES)), CHECKS // FAMILIES, axis=1)
    noise = np.sqrt(SHARED) * family + np.sqrt(1 - SHARED) * random.normal(size=(episodes, CHECKS))
    seen = noise + seeable[:, None] * where.strength - where.threshold
    scores = np.where(seen > 0, np.clip(0.5 + seen / 4, 0, 1), 0.0)
    return [_label(at, bool(bad[at]), scores[at]) for at in range(episodes)]


def _label(at: int, bad: bool, scores: np.ndarray) -> Label:
    seen = tuple(Seen(f"sim/{check}", 1, float(score), PRIOR, Cause.POLICY_EXPLOIT) for check, score in enumerate(scores) if score > 0)
    return Label(at + 1, str(at), "sim/stream", seen, bad, Cause.POLICY_EXPLOIT if bad else None, by_chance=True)


class Losses(NamedTuple):
    """Log loss on fresh episodes, in nats; None where the labels cannot carry it."""

    raw: float
    counted: float
    platt: float
    logistic: float
    chosen: float
    sklearn_logistic: float
    sklearn_isotonic: float
    brier: float
    ece: float


def losses(seed: int, labels: int) -> Losses:
    random = np.random.default_rng(seed)
    where = world(random)
    learnt, fresh = stream(random, where, labels), stream(random, where, FRESH)
    known = truth(fresh)
    said = {stage: predicted(fit(learnt, LEAK, stage=stage), fresh, LEAK) for stage in Stage}
    chosen = said[stage_for(learnt)]
    return Losses(
        log_loss(predicted(Model(policy=""), fresh, LEAK), known),
        *(log_loss(said[stage], known) for stage in (Stage.RAW, Stage.PLATT, Stage.LOGISTIC)),
        log_loss(chosen, known),
        *(log_loss(np.asarray(peer), known) for peer in _peers(learnt, fresh)),
        brier(chosen, known).value,
        ece(chosen, known).value,
    )


def _peers(learnt: list[Label], fresh: list[Label]) -> tuple[np.ndarray, np.ndarray]:
    bad = np.array([label.bad for label in learnt])
    if bad.all() or not bad.any():
        return np.full(len(fresh), LEAK), np.full(len(fresh), LEAK)
    regression = LogisticRegression(C=1.0, max_iter=1000).fit(_matrix(learnt), bad)
    isotonic = IsotonicRegression(y_min=1e-3, y_max=1 - 1e-3, out_of_bounds="clip")
    raw = Model(policy="")
    isotonic.fit(predicted(raw, learnt, LEAK), bad.astype(float))
    return regression.predict_proba(_matrix(fresh))[:, 1], isotonic.predict(predicted(raw, fresh, LEAK))


def _matrix(labels: list[Label]) -> np.ndarray:
    out = np.zeros((len(labels), CHECKS))
    for at, label in enumerate(labels):
        for seen in label.seen:
            out[at, int(seen.check.removeprefix("sim/"))] = seen.score
    return out


def mean(labels: int, runs: int) -> Losses:
    return Losses(*np.mean([losses(seed, labels) for seed in range(runs)], axis=0).tolist())


class Selected(NamedTuple):
    """Labels of a stream of which people looked at a part, and how wrong what was fitted on them is: log loss, calibration error, misses seen."""

    queue_alone: float
    queue_alone_ece: float
    unweighted: float
    unweighted_ece: float
    weighted: float
    weighted_ece: float
    labels: float


QUEUE, PICKED = 0.3, 0.01  # what people look at of what is flagged, and of everything
UNSEEN = 0.5


def selected(seed: int, episodes: int) -> Selected:
    random = np.random.default_rng(seed)
    where = world(random)
    posted, fresh = stream(random, where, episodes, UNSEEN), stream(random, where, FRESH, UNSEEN)
    flagged = predicted(Model(policy=""), posted, LEAK) >= 0.3
    looked, picked = random.random(episodes) < QUEUE, random.random(episodes) < PICKED
    queue = [posted[at]._replace(weight=1 / (1 - (1 - QUEUE) * (1 - PICKED))) for at in np.flatnonzero(flagged & (looked | picked))]
    chance = [posted[at]._replace(weight=1 / PICKED) for at in np.flatnonzero(~flagged & picked)]
    known, found = truth(fresh), []
    for labels in (queue, [one._replace(weight=1.0) for one in queue + chance], queue + chance):
        said = predicted(fit(labels, LEAK), fresh, LEAK)
        found += [log_loss(said, known), ece(said, known).value]
    return Selected(*found, len(queue + chance))


def main(runs: int) -> None:
    print("posted  labels  queue alone: loss ece | with picks, unweighted | weighted")
    for episodes in (3000, 10_000, 30_000):
        seen = Selected(*np.mean([selected(seed, episodes) for seed in range(runs)], axis=0).tolist())
        apart = (
            f"{seen.queue_alone:.4f} {seen.queue_alone_ece:.4f} | {seen.unweighted:.4f} {seen.unweighted_ece:.4f} | {seen.weighted:.4f} {seen.weighted_ece:.4f}"
        )
        print(f"{episodes:6} {seen.labels:7.0f}  {apart}")
    print("labels  raw    counted platt  logistic chosen | sklearn: logistic isotonic | brier  ece")
    for labels in (100, 300, 1000, 3000):
        seen = mean(labels, runs)
        own = f"{seen.raw:.4f} {seen.counted:.4f}  {seen.platt:.4f} {seen.logistic:.4f}   {seen.chosen:.4f}"
        print(f"{labels:6}  {own} | {seen.sklearn_logistic:17.4f} {seen.sklearn_isotonic:8.4f} | {seen.brier:.4f} {seen.ece:.4f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
