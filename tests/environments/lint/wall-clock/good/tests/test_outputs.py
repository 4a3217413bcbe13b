def test_stamp(stamp, started):
    assert stamp > started - 3600
