import sys

sys.path.insert(0, "/app")

from totals import total


def test_total():
    assert total([40, 2]) == 42
