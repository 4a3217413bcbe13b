"""What ran on an episode and what did not, in labelled facts."""

from __future__ import annotations

from collections.abc import Mapping

from dashboard.shapes import Fact, Section
from dashboard.wording.values import Json
from inspector.showable import showable

DONE_WELL = ("clean", "flagged")  # outcomes of a check that ran to its end
NOTE = 2_000


def section(covered: Mapping[str, Json]) -> Section:
    """What ran, what could not, and why; a clean verdict is clean only as far as this goes."""
    by: dict[str, list[tuple[str, Json]]] = {}
    for check, told in covered.items():
        by.setdefault(told["outcome"], []).append((check, told))
    facts = []
    for outcome in ("flagged", "error", "pending", "inconclusive", "not_assessed", "clean"):
        facts += [_covered(outcome, check, told) for check, told in by.get(outcome, ())]
    ran = sum(len(by.get(outcome, ())) for outcome in DONE_WELL)
    return Section(f"Coverage: {ran} of {len(covered)} checks ran to their end", facts, folded=True)


def _covered(outcome: str, check: str, told: Json) -> Fact:
    note = f" — {showable(told['note'], limit=NOTE)}" if told.get("note") else ""
    return Fact(outcome.replace("_", " "), f"{showable(check)}@{told['version']}{note}", {"flagged": "flag", "error": "quarantine"}.get(outcome, ""))
