"""Logs: turned over, bounded, shown safely."""

from __future__ import annotations

from pathlib import Path

from inspector.embedded import logs


def test_older_logs_move_up_and_the_oldest_goes(tmp_path: Path):
    log = tmp_path / "api.log"
    for turn in range(6):
        logs.turn_over(log)
        log.write_text(str(turn))
    assert [(tmp_path / name).read_text() for name in ("api.log", "api.log.1", "api.log.2", "api.log.3")] == ["5", "4", "3", "2"]
    assert len(list(tmp_path.iterdir())) == 1 + logs.KEPT


def test_a_log_that_grew_too_large_starts_anew_under_its_writer(tmp_path: Path):
    log = tmp_path / "api.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"x" * 100)
        logs.bound(log, largest_bytes=99)
        writer.write(b"after")
    assert log.read_bytes() == b"after"
    assert (tmp_path / "api.log.1").read_bytes() == b"x" * 100


def test_the_end_of_a_log_cannot_drive_a_terminal(tmp_path: Path):
    log = tmp_path / "api.log"
    log.write_bytes(b"first\n" * 50 + b"\x1b]0;owned\x07\nlast\xff\n")
    shown = logs.tail(log, lines=2)
    assert "\x1b" not in shown
    assert shown.endswith("last\ufffd")
    assert "first" not in shown


def test_a_missing_or_empty_log_says_so(tmp_path: Path):
    assert "was not written" in logs.tail(tmp_path / "no.log")
    (tmp_path / "empty.log").touch()
    assert "is empty" in logs.tail(tmp_path / "empty.log")
