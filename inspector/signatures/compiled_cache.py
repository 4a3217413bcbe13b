"""Keeps compiled patterns in the user's cache folder, by hyperscan's version, the processor and the patterns themselves.

A file is used only where it is ours, nobody else may write it and its checksum holds; one that cannot be read or written
is passed over, and costs the time to compile.
"""

from __future__ import annotations

import hashlib
import os
import platform
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import msgspec

_MAGIC = b"inspector-patterns-1\n"
MOST = 64 << 20  # bytes of one file


class Compiled(msgspec.Struct, frozen=True, array_like=True):
    """What is kept."""

    data: bytes
    refused: tuple[int, ...] = ()  # patterns that the compiler does not take


def folder() -> Path:
    """`$INSPECTOR_CACHE_DIR`, else `inspector` in the user's cache folder."""
    if own := os.environ.get("INSPECTOR_CACHE_DIR"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "inspector"


def read(key: Sequence[bytes]) -> Compiled | None:
    """What was kept under this key; None where nothing is, or nothing that can be trusted."""
    try:
        with _path(key).open("rb") as file:
            state = os.fstat(file.fileno())
            if state.st_uid != os.getuid() or state.st_mode & 0o022 or state.st_size > MOST:
                return None
            held = file.read(MOST)
    except (OSError, RuntimeError):  # RuntimeError: a user without a home
        return None
    start = len(_MAGIC) + 32
    if not held.startswith(_MAGIC) or hashlib.sha256(held[start:]).digest() != held[len(_MAGIC) : start]:
        return None
    with suppress(msgspec.DecodeError):
        return msgspec.msgpack.decode(held[start:], type=Compiled)
    return None


def write(key: Sequence[bytes], made: Compiled) -> None:
    """Keep it, whole or not at all; a folder that cannot be written is passed over."""
    body = msgspec.msgpack.encode(made)
    with suppress(OSError, RuntimeError):
        path = _path(key)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(body).digest() + body)
            Path(temporary).replace(path)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise


def _path(key: Sequence[bytes]) -> Path:
    digest = hashlib.sha256(b"\0".join([_processor().encode(), *key])).hexdigest()
    return folder() / f"patterns-{digest[:40]}.bin"


@cache
def _processor() -> str:
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return "\n".join(line for line in dict.fromkeys(lines) if line.startswith(("model name", "flags", "CPU part", "Features")))
    return f"{platform.machine()} {platform.processor()}"
