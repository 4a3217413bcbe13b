"""Keeps the children's logs: turned over at each start, bounded while they grow, their ends shown when something fails."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from inspector.showable import showable

KEPT = 3  # older logs beside the current one
LARGEST_BYTES = 32 << 20
TAIL_BYTES = 4096


def turn_over(path: Path) -> None:
    """Move `name.log` to `name.log.1`, that one to `.2`, and drop the oldest."""
    for number in range(KEPT, 0, -1):
        older, newer = _numbered(path, number), _numbered(path, number - 1)
        if newer.exists():
            newer.replace(older)


def bound(path: Path, largest_bytes: int = LARGEST_BYTES) -> None:
    """Empty a log that grew too large, its text kept as `name.log.1`. Its writers append, so they go on at the new start."""
    if path.exists() and path.stat().st_size > largest_bytes:
        shutil.copyfile(path, _numbered(path, 1))
        os.truncate(path, 0)


def tail(path: Path, lines: int = 15) -> str:
    """The last lines of a log, safe to print; says so when there are none."""
    if not path.exists():
        return f"({path} was not written)"
    with path.open("rb") as log:
        log.seek(max(0, path.stat().st_size - TAIL_BYTES))
        text = log.read().decode(errors="replace")
    last = text.rstrip().splitlines()[-lines:]
    return showable("\n".join(last), lines=True) or f"({path} is empty)"


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}") if number else path
