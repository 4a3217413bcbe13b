from pathlib import Path


def test_total():
    int(Path("/app/total.txt").read_text())
