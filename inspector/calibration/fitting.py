"""Fits a model on labels, as much of one as they can carry.

Below NEEDED labels the noisy-OR stands, with what the labels say of each check. From there on Platt's two numbers on its
logit, with his own targets (Platt, Probabilistic Outputs for Support Vector Machines, 1999, §2.2); from LOGISTIC labels and
POSITIVES bad ones on an L2 logistic regression with C = 1 on every check's score, that logit and the environment's. What a
label adds to its checks' precision is kept out of the logit that it is fitted by, fold by fold: a fit on its own answers
would be too sure. Isotonic regression is not used: below 1,000 labels it follows noise, and above them Platt's curve and the
regression leave it little to gain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from inspector.calibration.labels import Label, folds, natural, weights
from inspector.calibration.model import Model, Stage, logit
from inspector.calibration.records import UNKNOWN, Record, tally
from inspector.combine import bounded, heaviest, noisy_or

Vector = NDArray[np.float64]
NEEDED, NEEDED_OF_EACH = 50, 2  # labels, and of them bad and good ones
LOGISTIC, POSITIVES = 300, 30
SHRINKAGE = 20.0  # labels that an environment needs to weigh as much as all the others together
LIMIT = 50.0  # of a coefficient


def stage_for(labels: Sequence[Label]) -> Stage:
    """What so many labels can carry."""
    bad = sum(label.bad for label in labels)
    rarer = min(bad, len(labels) - bad)
    if len(labels) >= LOGISTIC and rarer >= POSITIVES:
        return Stage.LOGISTIC
    return Stage.PLATT if len(labels) >= NEEDED and rarer >= NEEDED_OF_EACH else Stage.RAW


def fit(labels: Sequence[Label], leak: float, *, policy: str = "", stage: Stage | None = None) -> Model:
    """The model of these labels; `leak` is the policy's prior."""
    records, labels = tally(labels), natural(labels)
    stage = stage_for(labels) if stage is None else stage
    elsewhere, environments = _environments(labels)
    model = Model(
        policy=policy,
        stage=stage,
        labels=len(labels),
        positives=sum(label.bad for label in labels),
        until=max((label.number for label in labels), default=0),
        environments=environments,
        elsewhere=elsewhere,
        records=records,
    )
    if stage is Stage.RAW:
        return model
    logits, places = _held_out(labels, leak)
    bad, weight = np.array([label.bad for label in labels], float), np.array(weights(labels))
    if stage is Stage.PLATT:
        intercept, (slope,) = _descend(logits[:, None], platt_targets(bad, weight), weight, 0.0)
        return msgspec.structs.replace(model, intercept=intercept, slope=slope)
    names = sorted({seen.name for label in labels for seen in label.seen})
    intercept, (slope, environment, *each) = _descend(np.column_stack([logits, places, _scores(labels, names)]), bad, weight, 1.0)
    return msgspec.structs.replace(model, intercept=intercept, slope=slope, environment=environment, checks=dict(zip(names, each, strict=True)))


def platt_targets(bad: Vector, weight: Vector) -> Vector:
    """Where the labels themselves are uncertain: (N+ + 1) / (N+ + 2) for bad ones, 1 / (N- + 2) for good ones."""
    positive, negative = float(weight @ bad), float(weight @ (1.0 - bad))
    return np.where(bad > 0, (positive + 1.0) / (positive + 2.0), 1.0 / (negative + 2.0))


def noisy(label: Label, records: Mapping[str, Record], leak: float) -> float:
    """The noisy-OR of what was seen, under precisions from these records."""
    return noisy_or(leak, heaviest((s.check, records.get(s.name, UNKNOWN).precision(s.prior).mean * bounded(s.score)) for s in label.seen))


def predicted(model: Model, labels: Sequence[Label], leak: float) -> Vector:
    """What a model says of labels."""
    return np.array([model.probability(noisy(one, model.records, leak), {s.name: bounded(s.score) for s in one.seen}, one.environment) for one in labels])


def crossed(labels: Sequence[Label], leak: float, stage: Stage) -> Vector:
    """What models of this stage say of labels that they were not fitted on."""
    out = np.full(len(labels), leak)
    for learnt, held in folds(labels):
        model = fit([labels[at] for at in learnt], leak, stage=stage)
        out[held] = predicted(model, [labels[at] for at in held], leak)
    return out


def _held_out(labels: Sequence[Label], leak: float) -> tuple[Vector, Vector]:
    """Each label's logit of the noisy-OR and of its environment, known from the other folds."""
    logits, places = np.full(len(labels), logit(leak)), np.zeros(len(labels))
    for learnt, held in folds(labels):
        others = [labels[at] for at in learnt]
        records, (elsewhere, environments) = tally(others), _environments(others)
        logits[held] = [logit(noisy(labels[at], records, leak)) for at in held]
        places[held] = [environments.get(labels[at].environment, elsewhere) for at in held]
    return logits, places


def _environments(labels: Sequence[Label]) -> tuple[float, dict[str, float]]:
    """The logit of the share of faults over all, and of each environment's own, drawn towards it."""
    weight = weights(labels)
    share = (sum(w for w, label in zip(weight, labels, strict=True) if label.bad) + 1.0) / (sum(weight) + 2.0)
    counted: dict[str, tuple[float, float]] = {}
    for w, label in zip(weight, labels, strict=True):
        bad, total = counted.get(label.environment, (0.0, 0.0))
        counted[label.environment] = (bad + w * label.bad, total + w)
    return logit(share), {name: logit((bad + SHRINKAGE * share) / (total + SHRINKAGE)) for name, (bad, total) in sorted(counted.items())}


def _scores(labels: Sequence[Label], names: Sequence[str]) -> Vector:
    place = {name: at for at, name in enumerate(names)}
    out = np.zeros((len(labels), len(names)))
    for at, label in enumerate(labels):
        for seen in label.seen:
            out[at, place[seen.name]] = bounded(seen.score)
    return out


def _descend(columns: Vector, target: Vector, weight: Vector, penalty: float) -> tuple[float, list[float]]:
    """Intercept and coefficients, none below 0, of the least weighted log loss + penalty / 2 x the sum of their squares."""

    def cost(at: Vector) -> tuple[float, Vector]:
        x = at[0] + columns @ at[1:]
        loss = weight @ (np.logaddexp(0.0, x) - target * x) + penalty / 2 * (at[1:] @ at[1:])
        rest = weight * (expit(x) - target)
        return float(loss), np.concatenate([[rest.sum()], columns.T @ rest + penalty * at[1:]])

    start = np.zeros(columns.shape[1] + 1)
    start[1] = 1.0
    bounds = [(-LIMIT, LIMIT)] + [(0.0, LIMIT)] * columns.shape[1]
    found = minimize(cost, start, jac=True, bounds=bounds, method="L-BFGS-B", options={"maxiter": 500}).x
    return float(found[0]), [max(float(value), 0.0) for value in found[1:]]
