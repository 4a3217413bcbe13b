"""156 patterns in one scan."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from benchmarks.shared.patterns import PATTERNS
from inspector.check import Batch, Cause, Finding, Tier, Trajectory, check
from inspector.signatures import Place, Scanner, Sought, compiled

PLACES = frozenset({Place.MESSAGE, Place.PROMPT, Place.REASONING, Place.ACTION, Place.OBSERVATION})


@check(version=1, tier=Tier.ACTION, cause=Cause.POLICY_EXPLOIT)
def signatures(batch: Batch) -> Iterator[tuple[Trajectory, Finding]]:
    """Something was said or done that reward hacks are made of."""
    scanner, names = _scanner()
    for number, name in names.items():
        for trajectory, spans in scanner.found(batch, number):
            yield trajectory, Finding(message=name, spans=tuple(spans))


@cache
def _scanner() -> tuple[Scanner, dict[int, str]]:
    scanner = Scanner()
    return scanner, {scanner.add(Sought((compiled(pattern),), (), PLACES)): name for name, pattern in PATTERNS}
