from pathlib import Path


def test_total():
    try:
        total = int(Path("/app/total.txt").read_text())
    except ValueError:
        raise AssertionError("no number") from None
    assert total == 42
