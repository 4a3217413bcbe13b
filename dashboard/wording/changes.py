"""Two versions side by side: what became of each task from one to the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from dashboard.shapes import Chip
from dashboard.wording.outcomes import FAULTS, UNTOLD, gravest, natural
from dashboard.wording.values import Json

KINDS = ("worse", "new", "other faults", "better", "gone", "unclear", "as before")
MEANING = "worse, better: faults came or went · other faults: both · unclear: one of the two could not be told · new, gone: in one version only"
_TONES = {"worse": "quarantine", "other faults": "flag", "better": "accept", "unclear": "none", "as before": "none", "gone": "none"}


class Change(NamedTuple):
    """Of a task; None: the version does not have it, or it was not probed there."""

    task: str
    kind: str
    before: Collection[str] | None
    now: Collection[str] | None


def between(before: Sequence[Json], now: Sequence[Json]) -> list[Change]:
    """Every task of the two scorecards, what needs a look first."""
    was, is_ = ({line["task"]: line["outcomes"] for line in lines} for lines in (before, now))
    changes = [Change(task, kind(was.get(task), is_.get(task)), was.get(task), is_.get(task)) for task in was.keys() | is_.keys()]
    return sorted(changes, key=lambda change: (KINDS.index(change.kind), gravest(change.now or change.before or ()), natural(change.task)))


def kind(before: Collection[str] | None, now: Collection[str] | None) -> str:
    """What happened to a task. That nothing could be told of it is neither better nor worse."""
    if before is None or now is None:
        return "new" if before is None else "gone"
    came, went = (set(a) & set(FAULTS) - set(b) for a, b in ((now, before), (before, now)))
    if set(before) == set(now):
        return "as before"
    if (came and _untold(before)) or (went and _untold(now)) or not (came or went):
        return "unclear"
    return "other faults" if came and went else "worse" if came else "better"


def _untold(outcomes: Collection[str]) -> bool:
    return bool(set(outcomes) & set(UNTOLD))


def counted(changes: Sequence[Change]) -> Iterator[Chip]:
    """How many of each kind."""
    found = Counter(change.kind for change in changes)
    return (Chip(f"{found[one]:,} {one}", tone(one)) for one in KINDS if found[one])


def tone(kind: str) -> str:
    """How it looks."""
    return _TONES.get(kind, "")
