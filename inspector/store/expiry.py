"""The segment files of days that nothing points to any more."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path
from uuid import UUID


def days(root: Path, project: UUID) -> list[tuple[date, Path]]:
    """The days on which a project wrote segments, oldest first, with their folders."""
    folder = root / "segments" / str(project)
    return sorted((date.fromisoformat(path.name), path) for path in folder.glob("????-??-??") if path.is_dir())


def remove(folder: Path) -> int:
    """Remove a day's files and its folder, so that it lasts; how many files. May be repeated."""
    files = list(folder.glob("*.seg"))
    for file in files:
        file.unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()
    above = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(above)
    finally:
        os.close(above)
    return len(files)
