"""Whether a decision has reached a trainer, as far as anyone can know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dashboard.shapes import Fact
from dashboard.wording.values import Json


class Reach(NamedTuple):
    """What training runs report of this trajectory."""

    used: Sequence[Json]  # {step, weight, reward, feed} of updates that were trained on it
    head: int | None  # how far the newest report of its run had read the feed


def facts(line: Json, told: Reach) -> list[Fact]:
    """Whether the decision has reached a trainer, as far as anyone can know."""
    told_of = []
    seq = line["seq"]
    if seq is None:
        told_of.append(Fact("feed", "not logged: a keep is answered when asked" if line["action"] == "keep" else "not logged"))
    else:
        told_of.append(Fact("feed", f"logged as seq {seq}; any follower past {seq} has it"))
        if told.head is not None:
            told_of.append(Fact("trainer", f"has read up to {told.head}: {'it has it' if told.head >= seq else 'it has not seen it yet'}"))
    return told_of + [_used(seq, update) for update in told.used]


def _used(seq: int | None, update: Json) -> Fact:
    read = (update.get("feed") or {}).get("seq")
    late = seq is not None and read is not None and read < seq
    known = "" if read is None else f", having read the feed to {read}" + (": before this decision" if late else "")
    reward = "" if update.get("reward") is None else f" at reward {update['reward']:g}"
    return Fact(
        f"step {update['step']}", f"was trained on it with weight {update['weight']:g}{reward}{known}", "quarantine" if late and update["weight"] else ""
    )
