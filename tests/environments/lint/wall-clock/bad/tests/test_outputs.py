import time


def test_stamp(stamp):
    assert stamp > time.time() - 3600
