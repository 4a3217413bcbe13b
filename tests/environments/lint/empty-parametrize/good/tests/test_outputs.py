import pytest


@pytest.mark.parametrize("month", ["may", "june"])
def test_total(month, totals):
    assert totals[month] > 0
