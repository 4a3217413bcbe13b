"""Uploaded files of a project, by their digest: final states, logs, images. Written once, never changed."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import UUID

from sqlmodel import Session

from inspector.errors import BadSubmission, StorageFull, TooLarge, Unavailable, Unknown
from inspector.store.session import driver


def path_of(root: Path, project: UUID, sha256: str) -> Path:
    """Where a project's artifact lies."""
    return root / str(project) / sha256[:2] / sha256


class Upload:
    """One file on its way in: `write` pieces, then `finish`. Left early, nothing stays."""

    def __init__(self, root: Path, project: UUID, sha256: str, *, limit_bytes: int) -> None:
        self._final = path_of(root, project, sha256)
        self._expected = sha256
        self._limit = limit_bytes
        self._seen = hashlib.sha256()
        self.length = 0
        self._final.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._part = self._final.with_name(f".{sha256[:16]}.{secrets.token_hex(8)}")
        self._file = os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self._file)
        self._part.unlink(missing_ok=True)

    def write(self, piece: bytes) -> None:
        """Raises TooLarge and StorageFull."""
        self.length += len(piece)
        if self.length > self._limit:
            raise TooLarge(f"an artifact of more than {self._limit} bytes")
        self._seen.update(piece)
        try:
            while piece:
                piece = piece[os.write(self._file, piece) :]
        except OSError as error:
            raise _failure(error) from error

    def finish(self) -> None:
        """Durable under its name when this returns; raises BadSubmission when the bytes are not those of the digest."""
        found = self._seen.hexdigest()
        if found != self._expected:
            raise BadSubmission(f"the body has the sha256 {found}, not {self._expected}", path="path.sha256")
        try:
            os.fsync(self._file)
            self._part.rename(self._final)
            for folder in list(self._final.parents)[:4]:  # of the digest, the project, all artifacts, the store: any of them may be new
                _flush(folder)
        except OSError as error:
            raise _failure(error) from error


def add(session: Session, project: int, sha256: str, length: int) -> bool:
    """Make an uploaded file known; False when it was known before."""
    statement = "INSERT INTO artifact (project, sha256, length) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
    return driver(session).execute(statement, (project, bytes.fromhex(sha256), length)).rowcount > 0


def length_of(session: Session, project: int, sha256: str) -> int:
    """Bytes of a project's artifact; raises Unknown."""
    row = driver(session).execute("SELECT length FROM artifact WHERE project = %s AND sha256 = %s", (project, bytes.fromhex(sha256))).fetchone()
    if row is None:
        raise Unknown("artifact", sha256)
    return int(row[0])


def _flush(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _failure(error: OSError) -> Unavailable:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull("no room left for artifacts")
    return Unavailable(f"the artifact store cannot be written: {error.strerror}")
