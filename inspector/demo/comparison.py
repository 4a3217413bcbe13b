"""Compares what was said of the bundled trajectories with what must be said of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import msgspec


class Seen(NamedTuple):
    """What was said of one trajectory."""

    verdict: str
    action: str
    cause: str | None
    checks: frozenset[str] = frozenset()  # that found something


class Compared(NamedTuple):
    """One trajectory's expected and seen sides; `fault` is empty where they agree."""

    id: str
    expected: Seen | None
    seen: Seen | None
    fault: str


class _Expected(msgspec.Struct):
    verdict: str
    action: str
    cause: str | None
    checks: list[str]  # topics


def folder() -> Path:
    """Where the demo's data lies."""
    return Path(str(files("inspector.demo")))


def compare(seen: Mapping[str, Seen]) -> list[Compared]:
    """Every expected trajectory and every one that nobody expected, in the order of the expectations."""
    expected, topics = _expected(), _topics()
    rows = [_compared(id_, wanted, seen.get(id_), topics) for id_, wanted in expected.items()]
    return rows + [Compared(id_, None, found, "not expected") for id_, found in seen.items() if id_ not in expected]


def idle(seen: Iterable[Seen]) -> list[str]:
    """Checks that the demo is to show, and that found nothing in it."""
    shown = {check for checks in _topics().values() for check in checks}
    return sorted(shown - {check for one in seen for check in one.checks})


def _compared(id_: str, wanted: _Expected, seen: Seen | None, topics: Mapping[str, list[str]]) -> Compared:
    by = frozenset(check for topic in wanted.checks for check in topics[topic])
    expected = Seen(wanted.verdict, wanted.action, wanted.cause, by)
    if seen is None:
        return Compared(id_, expected, None, "no verdict")
    differing = [name for name in ("verdict", "action", "cause") if getattr(seen, name) != getattr(expected, name)]
    if not differing and by and not by & seen.checks:
        differing = ["check"]
    return Compared(id_, expected, seen, ", ".join(differing))


def _expected() -> dict[str, _Expected]:
    read: dict[str, dict[str, _Expected]] = msgspec.json.decode((folder() / "expected.json").read_bytes(), type=dict[str, Any])
    return msgspec.convert(read["trajectories"], dict[str, _Expected])


def _topics() -> dict[str, list[str]]:
    return msgspec.json.decode((folder() / "topics.json").read_bytes(), type=dict[str, list[str]])
