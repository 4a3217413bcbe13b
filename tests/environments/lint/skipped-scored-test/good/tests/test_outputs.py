import pytest


@pytest.mark.timeout(10)
def test_total(total):
    assert total == 42
