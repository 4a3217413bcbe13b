"""Where segment files lie, and what is said when they cannot be used."""

from __future__ import annotations

import errno
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from inspector.errors import StorageFull, Unavailable

WRITE_BYTES = 4 << 20  # handed to the kernel at once
NAME = re.compile(r"[0-9a-f]{16}\.seg")


def path_of(root: Path, project: UUID, segment: int) -> Path:
    """The file of a segment below the store's root."""
    day = datetime.fromtimestamp((segment >> 21) / 1000, UTC).date()
    return root / "segments" / str(project) / day.isoformat() / f"{segment:016x}.seg"


def prepare(root: Path) -> None:
    """Make the store's folder so that its name lasts: what is flushed below a folder whose own name is lost at a power cut is lost with it."""
    missing = [folder for folder in (root, *root.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True, mode=0o700)
        flush_folder(folder.parent)
    flush_folder(root.parent)  # also where it was made by a start that did not come to its flush


def flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def unreadable(path: Path, error: OSError) -> Unavailable:
    return Unavailable(f"segment {path} cannot be read: {error}")


def failure(path: Path, error: OSError) -> Unavailable:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull(f"no room for segments below {path}: {error.strerror}", retry_after_s=30.0)
    return Unavailable(f"segments below {path} cannot be written: {error}")
