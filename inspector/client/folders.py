"""Folders of the spool: one per process, held by a lock that ends with the process."""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

LOCK = "lock"


def scope_of(url: str, key: str) -> str:
    """A name for (service, key), so that what was spooled for one project is never sent to another."""
    return hashlib.sha256(f"{url}\n{key}".encode()).hexdigest()[:16]


class Folder:
    """A folder whose lock this process holds."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path, self._lock = path, lock

    @classmethod
    def create(cls, root: Path, scope: str) -> Folder:
        """A new folder; locked before it gets the name under which others look for it. Raises OSError."""
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        name = f"{scope}-{time.time_ns():020d}-{os.getpid()}-{secrets.token_hex(4)}"
        unnamed, path = root / f".{name}", root / name
        unnamed.mkdir(mode=0o700)
        lock = os.open(unnamed / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unnamed.rename(path)
        sync_folder(root)
        return cls(path, lock)

    def release(self) -> None:
        """Leave it to the next process."""
        os.close(self._lock)

    def remove(self) -> None:
        """Delete it, with nothing of worth left in it."""
        (self.path / LOCK).unlink(missing_ok=True)
        self.path.rmdir()
        os.close(self._lock)

    def forget(self) -> None:
        """After a fork: the lock is the parent's, so only this copy of its descriptor is closed."""
        os.close(self._lock)


def left_behind(root: Path, scopes: Sequence[str]) -> Iterator[Folder]:
    """Folders of these scopes that no living process holds, oldest first; each is ours from here on."""
    if not root.is_dir():
        return
    names = sorted((name for name in os.listdir(root) if name.partition("-")[0] in scopes), key=lambda name: name.partition("-")[2])
    for name in names:
        if (folder := _taken_over(root / name)) is not None:
            yield folder


def _taken_over(path: Path) -> Folder | None:
    try:
        lock = os.open(path / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None  # gone meanwhile, or not one of ours
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(lock).st_nlink:  # else another process emptied and removed it while we opened it
            return Folder(path, lock)
    except BlockingIOError:
        os.close(lock)
        return None
    os.close(lock)
    return None


def sync_folder(path: Path) -> None:
    """Make the entries of a folder durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
