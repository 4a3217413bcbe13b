"""The files of a box, seen from outside: an upper folder over layers, read and written part by part so that no link is ever followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from inspector.sandbox.protocol import Refused

OPAQUE = "user.overlay.opaque"  # hides a folder of the same name below
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def parts_of(path: str) -> list[str]:
    """The names in an absolute path. Raises Refused."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not path.startswith("/") or ".." in parts or not parts or not sayable(path):
        raise Refused(f"{path[:200]!r} is no absolute path inside the box")
    return parts


def sayable(*words: str) -> bool:
    """Whether the kernel takes these words: no NUL in them, and nothing that no bytes stand for."""
    try:
        return b"\0" not in os.fsencode("".join(words))
    except UnicodeEncodeError:
        return False


def status(name: str, folder: int) -> os.stat_result | None:
    """Of one name, itself and not what it points to."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def is_whiteout(found: os.stat_result) -> bool:
    """Whether it says that something below is deleted."""
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == 0


def is_opaque(folder: int) -> bool:
    """Whether nothing below this folder is to be seen."""
    try:
        return os.getxattr(folder, OPAQUE) == b"y"
    except OSError:
        return False


@contextmanager
def opened(*folders: Path) -> Iterator[list[int]]:
    """Descriptors of folders, topmost first."""
    with ExitStack() as stack:
        yield [hold(stack, os.open(folder, FOLDER)) for folder in folders]


def hold(stack: ExitStack, descriptor: int) -> int:
    """Have a descriptor closed with the stack."""
    stack.callback(os.close, descriptor)
    return descriptor


def below(stack: ExitStack, folders: Sequence[int], name: str) -> tuple[os.stat_result | None, list[int]]:
    """What a name is in folders laid over each other: its status, and its descriptors if it is a folder."""
    found: os.stat_result | None = None
    inside: list[int] = []
    for folder in folders:
        here = status(name, folder)
        if here is None:
            continue
        if is_whiteout(here) or (found is not None and not stat.S_ISDIR(here.st_mode)):
            break
        found = found or here
        if not stat.S_ISDIR(here.st_mode):
            return here, [folder]
        inside.append(hold(stack, os.open(name, FOLDER, dir_fd=folder)))
        if is_opaque(inside[-1]):
            break
    return found, inside


def read(folders: Sequence[Path], path: str, limit: int) -> bytes | None:
    """A regular file's bytes; None where there is none, or something else. Raises Refused where it is longer than `limit` bytes."""
    *way, name = parts_of(path)
    try:
        with opened(*folders) as at, ExitStack() as stack:
            for part in way:
                found, at = below(stack, at, part)
                if found is None or not stat.S_ISDIR(found.st_mode):
                    return None
            found, at = below(stack, at, name)
            return _bytes(name, at[0], path, limit) if found is not None and stat.S_ISREG(found.st_mode) else None
    except OSError as error:  # a name too long, or a box that changes its files under our hands
        raise Refused(f"{path[:200]!r} cannot be read: {error.strerror}") from error


def _bytes(name: str, folder: int, path: str, limit: int) -> bytes | None:
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with open(descriptor, "rb", buffering=0) as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            return None
        if about.st_size > limit:
            raise Refused(f"{path[:200]!r} has {about.st_size} bytes, more than {limit}")
        data = b""
        while len(data) <= limit and (more := file.read(limit + 1 - len(data))):
            data += more
    if len(data) > limit:
        raise Refused(f"{path[:200]!r} has more than {limit} bytes")
    return data


def write(upper: Path, lowers: Sequence[Path], path: str, data: bytes, mode: int, owner: int) -> None:
    """Put a file into the upper folder; folders on the way are made as those below are. Raises Refused."""
    *way, name = parts_of(path)
    try:
        with opened(upper) as (at,), opened(*lowers) as under, ExitStack() as stack:
            for part in way:
                at, under = _enter(stack, at, under, part, owner, path)
            _replace(stack, at, under, name, path)
            _put(at, name, data, mode, owner)
    except OSError as error:
        raise Refused(f"{path[:200]!r} cannot be written: {error.strerror}") from error


def _enter(stack: ExitStack, at: int, under: Sequence[int], part: str, owner: int, path: str) -> tuple[int, list[int]]:
    here = status(part, at)
    lower, inside = below(stack, under, part)
    if here is not None and is_whiteout(here):
        os.unlink(part, dir_fd=at)
        return _make(stack, at, part, 0o755, owner, opaque=lower is not None), []
    kind = here or lower
    if kind is not None and not stat.S_ISDIR(kind.st_mode):
        raise Refused(f"{path[:200]!r}: {part[:100]!r} is no folder")
    if here is None:
        return _make(stack, at, part, 0o755 if lower is None else stat.S_IMODE(lower.st_mode), owner), inside if lower is not None else []
    folder = hold(stack, os.open(part, FOLDER, dir_fd=at))
    return folder, [] if is_opaque(folder) or lower is None or not stat.S_ISDIR(lower.st_mode) else inside


def _make(stack: ExitStack, at: int, part: str, mode: int, owner: int, *, opaque: bool = False) -> int:
    os.mkdir(part, 0o700, dir_fd=at)
    folder = hold(stack, os.open(part, FOLDER, dir_fd=at))
    if opaque:
        os.setxattr(folder, OPAQUE, b"y")
    os.fchown(folder, owner, owner)
    os.fchmod(folder, mode)
    return folder


def _replace(stack: ExitStack, at: int, under: Sequence[int], name: str, path: str) -> None:
    """What stood there goes: a file that has other names too must not change under them."""
    here = status(name, at)
    kind = here or below(stack, under, name)[0]
    if kind is not None and stat.S_ISDIR(kind.st_mode):
        raise Refused(f"{path[:200]!r} is a folder")
    if here is not None:
        os.unlink(name, dir_fd=at)


def _put(at: int, name: str, data: bytes, mode: int, owner: int) -> None:
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=at)
    with open(descriptor, "wb", buffering=0) as file:
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(rest) :]
        os.fchown(descriptor, owner, owner)
        os.fchmod(descriptor, mode & 0o777)
