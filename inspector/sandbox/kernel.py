"""The few system calls that Python does not offer."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_BIND = 1, 2, 4, 4096
MNT_DETACH = 2

_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: Path, kind: str | None, flags: int, options: str = "") -> None:
    """mount(2). Raises OSError."""
    if _libc.mount(source.encode(), os.fsencode(target), kind.encode() if kind else None, ctypes.c_ulong(flags), options.encode() or None):
        raise _error(target)


def unmount(target: Path) -> None:
    """Take a mount out of sight at once; its last user frees it. Does nothing where none is. Raises OSError."""
    if _libc.umount2(os.fsencode(target), MNT_DETACH) and ctypes.get_errno() not in (errno.EINVAL, errno.ENOENT):
        raise _error(target)


def _error(path: Path) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), str(path))
