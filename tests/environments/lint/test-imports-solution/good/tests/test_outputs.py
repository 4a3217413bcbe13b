from pathlib import Path


def test_total():
    wanted = Path("/tests/total.txt").read_text()
    assert Path("/app/total.txt").read_text().split() == wanted.split()
