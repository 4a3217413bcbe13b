"""What the state machine promises of fleets, on seeded streams through the product's own machine."""

from __future__ import annotations

import pytest

from benchmarks.quarantine import HISTORY, healthy, installation, live, posterior, sick
from inspector.standing import DEFAULT


def test_no_hour_holds_more_than_its_share_and_the_sick_go_all_the_same() -> None:
    done = installation(1, hours=8)
    assert done.worst_share <= DEFAULT.fleet_share
    assert done.asked > 0
    assert done.quarantined == done.sick_quarantined >= 3


def test_an_environment_that_turns_bad_is_found_sooner_than_by_the_posterior() -> None:
    assert sick(live, 0.2, 40, HISTORY).median < sick(posterior, 0.2, 40, HISTORY).median


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "most"), [(0.0, 0.0), (0.01, 0.05), (0.03, 1.0)])
def test_a_healthy_environment_is_hardly_ever_quarantined(rate: float, most: float) -> None:
    assert healthy(live, rate, 1000).per_1000 <= most


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "most"), [(0.1, 80), (0.2, 35), (0.4, 25)])
def test_a_sick_one_is_quarantined_soon(rate: float, most: int) -> None:
    found = sick(live, rate, 1000, HISTORY)
    assert found.median <= most
    assert found.missed <= 0.01
