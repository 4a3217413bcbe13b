from pathlib import Path


def test_total():
    text = Path("/app/total.txt").read_text()
    assert text.split() == ["42"]
