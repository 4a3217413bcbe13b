"""How often each check was right, and how much of its kind of fault it caught, counted in effective labels.

Labels have unequal weights, so a share known from them is worth fewer than their number: as many as Kish's effective
sample size, (sum w)^2 / sum w^2 (Survey Sampling, 1965, §11.7). A posterior is the policy's prior plus these counts.

What a check misses is met only where people look whatever the checks say: at what chance picked, and at planted faults.
Where they do neither, recall stays as it was believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from inspector.calibration.labels import Label, Seen
from inspector.combine import Beta
from inspector.verdict import Cause


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of one check and version, in effective labels."""

    labels: int = 0  # in which it found something, by plain count
    right: float = 0.0
    wrong: float = 0.0
    caught: float = 0.0
    missed: float = 0.0

    def precision(self, prior: Beta) -> Beta:
        """That what it finds is as it says."""
        return prior.updated(self.right, self.wrong)

    def recall(self, prior: Beta) -> Beta:
        """That it finds a fault of its kind."""
        return prior.updated(self.caught, self.missed)


UNKNOWN = Record()


def tally(labels: Sequence[Label]) -> dict[str, Record]:
    """The record of every check that found something, by `name@version`."""
    natural, planted = _said([label for label in labels if not label.canary]), _said([label for label in labels if label.canary])
    causes = {name: pairs[0][1].cause for name, pairs in (natural | planted).items()}
    by_chance = _unseen(labels, canary=False) if any(label.by_chance for label in labels) else None
    canaries = _unseen(labels, canary=True)
    return {name: _record(natural.get(name, []), planted.get(name, []), cause, by_chance, canaries) for name, cause in sorted(causes.items())}


Said = Sequence[tuple[Label, Seen]]  # what one check said
Unseen = dict[Cause, list[float]]  # weights of the faults of each cause that no check of that cause saw


def _said(labels: Sequence[Label]) -> dict[str, list[tuple[Label, Seen]]]:
    said: dict[str, list[tuple[Label, Seen]]] = {}
    for label in labels:
        for seen in label.seen:
            said.setdefault(seen.name, []).append((label, seen))
    return said


def _record(natural: Said, planted: Said, cause: Cause, by_chance: Unseen | None, canaries: Unseen) -> Record:
    right, wrong = effective((label.weight, _is_right(label, seen)) for label, seen in natural)
    caught, missed = (0.0, 0.0) if by_chance is None else _recalled(natural, by_chance.get(cause, []))
    of_planted, lost = _recalled(planted, canaries.get(cause, []))
    return Record(labels=len(natural), right=right, wrong=wrong, caught=caught + of_planted, missed=missed + lost)


def _recalled(said: Said, unseen: Sequence[float]) -> tuple[float, float]:
    caught = [(label.weight, True) for label, seen in said if _is_right(label, seen)]
    return effective([*caught, *((weight, False) for weight in unseen)])


def _is_right(label: Label, seen: Seen) -> bool:
    """The person names no other cause; an anomaly has none of its own."""
    return label.bad and (label.cause is None or seen.cause is Cause.ANOMALY or label.cause is seen.cause)


def _unseen(labels: Sequence[Label], *, canary: bool) -> Unseen:
    """Such a fault counts against every check of its cause, whose kind it may have been.

    One that another check of the cause saw is of that one's kind, and counts against none.
    """
    unseen: Unseen = {}
    for label in labels:
        if label.canary is canary and label.bad and label.cause is not None and all(seen.cause is not label.cause for seen in label.seen):
            unseen.setdefault(label.cause, []).append(label.weight)
    return unseen


def effective(weighed: Iterable[tuple[float, bool]]) -> tuple[float, float]:
    """How many effective labels say yes, and how many no."""
    pairs = list(weighed)
    total = sum(weight for weight, _ in pairs)
    if not total:
        return 0.0, 0.0
    size = total * total / sum(weight * weight for weight, _ in pairs)
    share = sum(weight for weight, yes in pairs if yes) / total
    return size * share, size * (1.0 - share)
