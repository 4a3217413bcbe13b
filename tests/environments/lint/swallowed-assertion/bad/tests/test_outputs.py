from pathlib import Path


def test_total():
    try:
        assert int(Path("/app/total.txt").read_text()) == 42
    except Exception:
        print("no total")
