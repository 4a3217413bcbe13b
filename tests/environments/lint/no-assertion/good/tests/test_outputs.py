from pathlib import Path


def test_total():
    assert int(Path("/app/total.txt").read_text()) == 42
