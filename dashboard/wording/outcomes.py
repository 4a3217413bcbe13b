"""Outcomes of probes, worst first, and probes as they stand."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import datetime

from dashboard.shapes import Chip
from dashboard.wording.values import Json, ago
from inspector.showable import showable

FAULTS = ("exploitable", "trivially_passable", "unsolvable", "flaky", "weak_verifier", "false_rejecting")
UNTOLD = ("not_reproduced", "inconclusive", "not_assessed")  # nothing was learned, good or bad
GRAVITY = (*FAULTS, *UNTOLD)
TONES = dict.fromkeys(FAULTS[:3], "quarantine") | dict.fromkeys(FAULTS[3:], "flag") | dict.fromkeys(UNTOLD, "none") | {"sound": "accept"}
STATES = {"quarantined": "quarantine", "retired": "quarantine", "probation": "flag", "watch": "flag"}
GOES_ON = ("queued", "running")


def gravity(outcome: str) -> int:
    """Where it stands in the order; what is not known here stands before `sound`."""
    return GRAVITY.index(outcome) if outcome in GRAVITY else len(GRAVITY) + (outcome == "sound")


def gravest(outcomes: Collection[str]) -> tuple[int, ...]:
    """What tasks are sorted by, worst first: the gravest outcome, and of equal ones more outcomes."""
    return (min(map(gravity, outcomes), default=len(GRAVITY) + 1), -len(outcomes), *sorted(map(gravity, outcomes)))


def word(outcome: str) -> str:
    """As it is read."""
    return showable(outcome.replace("_", " "))


def chips(outcomes: Collection[str]) -> list[Chip]:
    """Of one task."""
    return [Chip(word(one), TONES.get(one, "")) for one in sorted(outcomes, key=gravity)]


def counted(counts: Mapping[str, int]) -> list[Chip]:
    """Of a version: how many tasks have each; a task may have several."""
    return [Chip(f"{counts[one]:,} {word(one)}", TONES.get(one, "")) for one in sorted(counts, key=gravity)]


def probed(count: int) -> str:
    """How many tasks the counts are of."""
    return f"{count:,} {'task' if count == 1 else 'tasks'} probed" if count else "not probed yet"


def done(probe: Json) -> str:
    """How far it is."""
    if probe["total"] is None:
        return "its tasks are being listed" if probe["state"] == "running" else "no task listed yet"
    return f"{probe['done']:,} of {probe['total']:,} tasks"


def when(probe: Json, now: datetime | None = None) -> str:
    """When it ended, or was asked for."""
    return ago(probe["ended_at"], now) if probe["ended_at"] else f"asked for {ago(probe['asked_at'], now)}"


def standing(probe: Json, now: datetime | None = None) -> str:
    """A probe in a line."""
    parts = [f"Probe {probe['state']}, {when(probe, now)}", done(probe), _cost(probe), f"{probe['depth']}, priority {probe['priority']}"]
    return " · ".join(filter(None, parts))


def _cost(probe: Json) -> str:
    spent, budget = probe["spent"], probe["budget"]
    words = [
        f"{spent[unit]:.1f} {_of(budget.get(unit))}{what}"
        for unit, what in (("cpu_s", "s CPU"), ("wall_s", "s on the clock"))
        if spent[unit] or budget.get(unit)
    ]
    return ", ".join(words)


def _of(budget: float | None) -> str:
    return "" if budget is None else f"of {budget:g} "


def natural(name: str) -> list[tuple[int, str]]:
    """Names with numbers in the order of the numbers."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]
