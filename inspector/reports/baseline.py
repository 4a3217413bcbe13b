"""What was known before, as a file that lies beside the tasks: only what is new fails."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from inspector.errors import InspectorError
from inspector.probe.words import Evidence, Outcome
from inspector.reports.encodable import encodable

BYTES = 64 << 20


class BadBaseline(InspectorError):
    """A baseline that cannot be read; the message names the file and why."""


class Known(msgspec.Struct, frozen=True, order=True, forbid_unknown_fields=True):
    """One outcome of one task, by one probe; no probe where nothing but the outcome was said."""

    environment: str
    task: str
    outcome: Outcome
    probe: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: Literal[1]
    known: list[Known]


@dataclass(frozen=True, slots=True)
class Baseline:
    """What is known of any number of environments."""

    known: frozenset[Known] = frozenset()

    def knows(self, environment: str, task: str, evidence: Evidence) -> bool:
        """Whether this outcome was found before, by this probe or by one that has the same root cause."""
        return not self.known.isdisjoint(known_by(environment, task, evidence))


def known_by(environment: str, task: str, evidence: Evidence) -> list[Known]:
    """What a baseline holds of one piece of evidence."""
    where = encodable(environment), encodable(task)
    return [Known(*where, evidence.outcome, encodable(probe)) for probe in (evidence.probe, *evidence.also)]


def read_baseline(path: Path) -> Baseline:
    """Raises BadBaseline."""
    try:
        with path.open("rb") as file:
            text = file.read(BYTES + 1)
        if len(text) > BYTES:
            raise BadBaseline(f"{path}: longer than {BYTES} bytes")
        return Baseline(frozenset(msgspec.json.decode(text, type=_File).known))
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadBaseline(f"{path}: no baseline: {error}") from error


def baseline_text(known: Iterable[Known]) -> str:
    """One line an entry and always in one order, so that a change reads well in a review."""
    lines = [f"  {msgspec.json.encode(one).decode()}" for one in sorted(set(known))]
    inside = "\n" + ",\n".join(lines) + "\n" if lines else ""
    return f'{{"version": 1, "known": [{inside}]}}\n'
