from pathlib import Path


def test_total():
    assert Path("/app/total.txt").exists()
    assert int(Path("/app/total.txt").read_text()) == 42
