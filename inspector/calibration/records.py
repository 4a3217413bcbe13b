"""How often each check was right, and how much of its kind of fault it caught, counted in effective labels.

Labels have unequal weights, so a share known from them is worth fewer than their number: as many as Kish's effective
sample size, (sum w)^2 / sum w^2 (Survey Sampling, 1965, §11.7). A posterior is the policy's prior plus these counts.
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
    said: dict[str, list[tuple[Label, Seen]]] = {}
    for label in labels:
        for seen in label.seen:
            said.setdefault(seen.name, []).append((label, seen))
    unseen = _unseen(labels)
    return {name: _record(pairs, unseen) for name, pairs in sorted(said.items())}


def _record(pairs: Sequence[tuple[Label, Seen]], unseen: dict[Cause, list[float]] | None) -> Record:
    right, wrong = effective((label.weight, _is_right(label, seen)) for label, seen in pairs)
    if unseen is None:
        return Record(labels=len(pairs), right=right, wrong=wrong)
    caught = [label.weight for label, seen in pairs if _is_right(label, seen)]
    missed = unseen.get(pairs[0][1].cause, [])
    found, left = effective([(weight, True) for weight in caught] + [(weight, False) for weight in missed])
    return Record(labels=len(pairs), right=right, wrong=wrong, caught=found, missed=left)


def _is_right(label: Label, seen: Seen) -> bool:
    """The person names no other cause; an anomaly has none of its own."""
    return label.bad and (label.cause is None or seen.cause is Cause.ANOMALY or label.cause is seen.cause)


def _unseen(labels: Sequence[Label]) -> dict[Cause, list[float]] | None:
    """Weights of the faults of each cause that no check of that cause saw; None where nobody looked by chance, so that none could be met.

    Such a fault counts against every check of its cause, whose kind it may have been; one that another check of the cause
    saw is of that one's kind, and counts against none.
    """
    if not any(label.by_chance for label in labels):
        return None
    unseen: dict[Cause, list[float]] = {}
    for label in labels:
        if label.bad and label.cause is not None and all(seen.cause is not label.cause for seen in label.seen):
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
