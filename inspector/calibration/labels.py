"""What a person judged, with what the checks had said of it and how probable it was that a person looked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from inspector.combine import Beta
from inspector.verdict import Cause

FOLDS = 5
TRUNCATED = 3.0  # the heaviest label that a fit sees weighs so many times the lightest


class Seen(NamedTuple):
    """The heaviest of one check's findings that count towards the probability."""

    check: str
    version: int
    score: float  # in [0, 1]
    prior: Beta  # what the policy believes of its precision without labels
    cause: Cause

    @property
    def name(self) -> str:
        """As `builtin/x@1`."""
        return f"{self.check}@{self.version}"


class Label(NamedTuple):
    """One judged trajectory."""

    number: int  # later judgements have larger ones
    cluster: str  # its group, or itself: rollouts of one group stay together
    environment: str
    seen: tuple[Seen, ...]
    bad: bool  # not to be used as it is
    cause: Cause | None = None  # as the person named it
    weight: float = 1.0  # 1 / the probability that a person looked at it
    by_chance: bool = False  # looked at whatever the checks said
    canary: bool = False  # a known fault that was planted: it tells of recall alone

    @property
    def fold(self) -> int:
        """The same in every fit, for all of a cluster."""
        return int.from_bytes(hashlib.blake2b(self.cluster.encode(), digest_size=8).digest(), "big") % FOLDS


def natural(labels: Sequence[Label]) -> list[Label]:
    """Those that nobody planted."""
    return [label for label in labels if not label.canary]


def folds(labels: Sequence[Label]) -> list[tuple[list[int], list[int]]]:
    """(to learn from, held out) by position; a fold that holds nothing out, or all, is not there."""
    numbers = [label.fold for label in labels]
    cut = [([at for at, f in enumerate(numbers) if f != fold], [at for at, f in enumerate(numbers) if f == fold]) for fold in range(FOLDS)]
    return [(learnt, held) for learnt, held in cut if learnt and held]


def weights(labels: Iterable[Label], *, truncated: bool = True) -> list[float]:
    """With mean 1. Truncated for whatever is fitted or chosen: a few labels that stand for hundreds each would make it a matter of luck.

    Truncation trades a little bias for much variance (Cole and Hernán 2008); what decides whether a person looked is what
    the checks said, which the model knows, so little bias is to be feared. What is told of a model is not truncated.
    """
    raw = [label.weight for label in labels]
    cut = min(raw, default=1.0) * TRUNCATED
    kept = [min(weight, cut) for weight in raw] if truncated else raw
    mean = sum(kept) / len(kept) if kept else 1.0
    return [weight / mean for weight in kept]
