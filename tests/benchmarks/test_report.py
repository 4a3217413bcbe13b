"""Ratios are of CPU per trajectory, and a missed goal is called so."""

from __future__ import annotations

from benchmarks import report
from benchmarks.measuring import Tally


def tally(us: float) -> Tally:
    made = Tally()
    made.add({"api": us * 1e-6 * 25, "worker": us * 1e-6 * 75}, 100, 1.0, 0.01)
    return made


def tallies() -> dict[str, Tally]:
    names = {name for pair in report.RATIOS.values() for name in pair}
    return {name: tally(6000 if name.startswith("good") else 300) for name in names}


def test_ratios_are_peer_over_product() -> None:
    ratios = report.results(tallies(), {})["ratios"]
    assert ratios["good_500"] == 20  # type: ignore[index]
    assert ratios["naive_500"] == 1  # type: ignore[index]


def test_tables_say_what_held_and_what_was_missed() -> None:
    shown = report.tables(tallies(), report.results(tallies(), {"disk_of_raw_json": 0.5}))
    lines = {line.split()[0]: line for line in shown.splitlines() if line}
    assert lines["good_500"].endswith("held")
    assert lines["naive_500"].endswith("MISSED")
    assert lines["disk_of_raw_json"].endswith("MISSED")


def test_a_multiple_is_of_json_loads_of_the_same_bytes() -> None:
    assert round(tally(300).multiple, 6) == 3
