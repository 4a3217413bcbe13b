"""Keeps what the service will never take, with the reason, so that a person can look at it and post it again."""

from __future__ import annotations

import os
import secrets
from datetime import UTC, datetime
from pathlib import Path

import msgspec


class DeadLetter(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One line of the file."""

    reason: str
    path: str | None = None  # where in the envelope, as `$.reward`
    at: datetime
    line: str  # as it was sent; what is not UTF-8 in it is written as \\xNN


class DeadLetters:
    """Appends to one file per process, up to a cap; above it, refusals are only counted."""

    def __init__(self, root: Path | None, scope: str, max_bytes: int) -> None:
        self._root, self._max_bytes, self._bytes = root, max_bytes, 0
        self._name = f"dead-{scope}-{os.getpid()}-{secrets.token_hex(4)}.ndjson"

    def keep(self, line: bytes, reason: str, path: str | None = None) -> bool:
        """Whether it was written: there may be no folder, no room, or no disk."""
        letter = DeadLetter(reason=reason, path=path, at=datetime.now(UTC), line=line.decode("utf-8", "backslashreplace"))
        text = msgspec.json.encode(letter) + b"\n"
        if self._root is None or self._bytes + len(text) > self._max_bytes:
            return False
        try:
            self._append(self._root, text)
        except OSError:
            return False
        self._bytes += len(text)
        return True

    def _append(self, root: Path, text: bytes) -> None:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(root / self._name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, text)
        finally:
            os.close(file)
