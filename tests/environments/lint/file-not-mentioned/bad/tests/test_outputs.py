from pathlib import Path


def test_log():
    assert Path("/app/summary.log").read_text().strip() == "done"
