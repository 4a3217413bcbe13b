"""A project's model: from what the checks found to a probability. More evidence never lowers it.

Every coefficient of evidence is at least 0, by its fit and again when it is read: a logistic regression left to itself gives
a check that repeats another a negative one, and a second finding would then clear what the first raised.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

import msgspec

from inspector.calibration.records import UNKNOWN, Record
from inspector.combine import DIGITS, Beta
from inspector.errors import InspectorError

Coefficient = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
Number = Annotated[float, msgspec.Meta(ge=-1e6, le=1e6)]
SURE = 1e-6  # a probability is taken to be no nearer to 0 or 1


class BadModel(InspectorError):
    """A stored model that cannot be used."""


class Stage(StrEnum):
    """How findings become a probability."""

    RAW = "raw"  # the noisy-OR as it is, with each check's precision from labels
    PLATT = "platt"  # its logit, stretched and moved
    LOGISTIC = "logistic"  # beside it each check's own score, and how bad the environment is


class Interval(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A figure with its bootstrap interval of 95 %."""

    value: float
    low: float
    high: float


class Measured(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """On labels that were held out of the fit."""

    log_loss: float  # in nats
    raw_log_loss: float  # of the policy alone, as if there were no labels
    brier: Interval
    ece: Interval  # expected calibration error, ten bins


class Model(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Immutable; named by its digest in every verdict that rests on it."""

    policy: str  # the digest of the policy whose priors and table it was fitted under
    stage: Stage = Stage.RAW
    labels: int = 0
    positives: int = 0
    until: int = 0  # the number of the last label
    intercept: Number = 0.0
    slope: Coefficient = 1.0  # of the noisy-OR's logit
    checks: dict[str, Coefficient] = {}  # of a score, by `name@version`
    environment: Coefficient = 0.0  # of the environment's logit
    environments: dict[str, Number] = {}  # the logit of an environment's share of faults
    elsewhere: Number = 0.0  # of one that no label speaks of
    records: dict[str, Record] = {}  # by `name@version`
    measured: Measured | None = None

    def precision(self, check: str, version: int, prior: Beta) -> Beta:
        """That what the check finds is as it says, the policy's prior and the labels together."""
        return self.records.get(f"{check}@{version}", UNKNOWN).precision(prior)

    def recall(self, check: str, version: int, prior: Beta) -> Beta:
        """That the check finds a fault of its kind."""
        return self.records.get(f"{check}@{version}", UNKNOWN).recall(prior)

    def probability(self, noisy: float, scores: Mapping[str, float], environment: str) -> float:
        """That a trajectory is not to be used. `noisy` is the noisy-OR under these precisions, `scores` are by `name@version`."""
        if self.stage is Stage.RAW:
            return noisy
        terms = [self.intercept, self.slope * logit(noisy)]
        if self.stage is Stage.LOGISTIC:
            terms.append(self.environment * self.environments.get(environment, self.elsewhere))
            terms += [self.checks.get(name, 0.0) * score for name, score in scores.items()]
        return round(sigmoid(math.fsum(terms)), DIGITS)  # exactly rounded: in floating point too, more evidence never lowers it

    def packed(self) -> bytes:
        """As it is stored."""
        return msgspec.json.encode(self, order="deterministic")


def unpack(body: bytes) -> Model:
    """Raises BadModel, also where a coefficient would let evidence lower the probability."""
    try:
        return msgspec.json.decode(body, type=Model)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadModel(str(error)) from error


def digest(body: bytes) -> bytes:
    """Of a packed model."""
    return hashlib.sha256(body).digest()


def logit(p: float) -> float:
    """Of a probability, kept off 0 and 1."""
    p = min(max(p, SURE), 1.0 - SURE)
    return math.log(p / (1.0 - p))


def sigmoid(x: float) -> float:
    """Stable at both ends."""
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0 else math.exp(x) / (1.0 + math.exp(x))
