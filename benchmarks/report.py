"""The tables and the figures of a run."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from typing import Any

from benchmarks.measuring import Tally

EARLIER = {"naive": 320, "good": 59, "product, frames 500": 3.4}  # multiples of json.loads that the first prototypes of these designs had
GOALS = {
    "good_500": (">=", 15),
    "naive_500": (">=", 80),
    "naive_single_64": (">=", 25),
    "naive_long": (">=", 18),
    "ingest_vs_plain": ("<=", 1.0),
    "disk_of_raw_json": ("<=", 0.38),
    "queue_of_audit_cpu": ("<=", 0.03),
}
RATIOS = {
    "good_500": ("good", "product, frames 500"),
    "naive_500": ("naive", "product, frames 500"),
    "naive_single_64": ("naive", "product, single, 64 clients"),
    "naive_long": ("naive, long", "product, long"),
    "good_500_without_forest": ("good, no forest", "product, frames 500, no forest"),
    "naive_500_without_forest": ("naive, no forest", "product, frames 500, no forest"),
    "good_long": ("good, long", "product, long"),
    "ingest_vs_plain": ("intake: product", "intake: plain writer"),
    "ingest_gzip_vs_plain": ("intake: product, gzip", "intake: plain writer, gzip"),
}


def results(tallies: Mapping[str, Tally], shares: Mapping[str, float]) -> dict[str, object]:
    """What results.json holds."""
    return {
        "ratios": {name: round(tallies[over].each / tallies[under].each, 3) for name, (over, under) in RATIOS.items()},
        "shares": {name: round(share, 4) for name, share in shares.items()},
        "cpu_us": {name: round(tally.each * 1e6, 1) for name, tally in tallies.items()},
        "of_json_loads": {name: round(tally.multiple, 2) for name, tally in tallies.items()},
        "machine": {"processor": platform.machine(), "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1)},
    }


def tables(tallies: Mapping[str, Tally], figures: Mapping[str, object]) -> str:
    """All of it for people."""
    return "\n".join([*_costs(tallies), "", *_figures(figures)])


def _costs(tallies: Mapping[str, Tally]) -> list[str]:
    heads = ("CPU µs per trajectory", "total", "api", "worker", "postgres", "redis", "beat", "per s", "json.loads", "x loads", "earlier", "rounds")
    rows = [heads] + [_row(name, tally) for name, tally in tallies.items()]
    widths = [max(len(row[at]) for row in rows) for at in range(len(heads))]
    return ["  ".join(cell.ljust(width) if not at else cell.rjust(width) for at, (cell, width) in enumerate(zip(row, widths, strict=True))) for row in rows]


def _row(name: str, tally: Tally) -> tuple[str, ...]:
    parts = [f"{tally.parts.get(part, 0.0) / tally.trajectories * 1e6:,.0f}" for part in ("api", "worker", "postgres", "redis", "beat")]
    loads = tally.loads / tally.trajectories * 1e6
    spread = f"{min(tally.rounds) * 1e6:,.0f}-{max(tally.rounds) * 1e6:,.0f}"
    earlier = f"{EARLIER[name]:g}" if name in EARLIER else ""
    return (name, f"{tally.each * 1e6:,.0f}", *parts, f"{tally.trajectories / tally.wall:,.0f}", f"{loads:,.0f}", f"{tally.multiple:.1f}", earlier, spread)


def _figures(figures: Mapping[str, Any]) -> list[str]:
    found = {**figures["ratios"], **figures["shares"]}
    return [f"{name:26} {value:8.3f}  {_goal(name, value)}" for name, value in found.items()]


def _goal(name: str, value: float) -> str:
    if name not in GOALS:
        return ""
    sign, goal = GOALS[name]
    return f"{sign} {goal:g}  {'held' if (value >= goal if sign == '>=' else value <= goal) else 'MISSED'}"
