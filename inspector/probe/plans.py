"""How much of each probe is run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from inspector.probe import sequential


class Depth(StrEnum):
    """How much is run."""

    QUICK = "quick"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run of each."""

    references: int
    mutants: int
    more: bool  # what is only ever told in notes

    @classmethod
    def of(cls, depth: Depth) -> Plan:
        """The plan of a depth."""
        if depth is Depth.FULL:
            return cls(sequential.FLAKE_RUNS, 12, True)
        return cls(sequential.RUNS_AT_ONCE, 5, False)
