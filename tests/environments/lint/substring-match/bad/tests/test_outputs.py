from pathlib import Path


def test_total():
    text = Path("/app/total.txt").read_text()
    assert "42" in text
