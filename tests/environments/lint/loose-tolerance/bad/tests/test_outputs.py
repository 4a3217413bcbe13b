import pytest


def test_total(total):
    assert total == pytest.approx(42, rel=0.5)
