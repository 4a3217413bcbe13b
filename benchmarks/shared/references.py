"""Eight known solutions; an episode that shares most of its lines with one of them was copied."""

from __future__ import annotations

from functools import cache

from benchmarks.shared.thresholds import SHINGLE_CHARS
from benchmarks.workload import known_solution

KNOWN = 8


@cache
def texts() -> tuple[str, ...]:
    return tuple("\n".join(known_solution(number)) for number in range(KNOWN))


def shingles(text: str) -> set[str]:
    """The lines of a text that are long enough to tell something."""
    return {line for line in text.split("\n") if len(line) >= SHINGLE_CHARS}
