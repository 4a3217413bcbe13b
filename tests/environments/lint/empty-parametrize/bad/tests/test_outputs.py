import pytest


@pytest.mark.parametrize("month", [])
def test_total(month, totals):
    assert totals[month] > 0
