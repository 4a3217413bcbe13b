"""What a box changed: told as a diff, or kept as a layer that is named by its content."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from inspector.sandbox.files import FOLDER, OPAQUE, below, hold, is_opaque, is_whiteout, opened
from inspector.sandbox.protocol import Broken, Changed, Diff, Layer, Refused

DEPTH = 300  # folders in folders that are followed; each is an open descriptor
PATH_BYTES = 4000  # within which another name of a file can be given to the kernel
CHUNK = 1 << 20
ROOT_MODE = 0o755  # of every layer: a box has its own root above it
BOOKKEEPING = ("user.overlay.origin", "user.overlay.impure", "user.overlay.uuid", "user.overlay.nlink")  # of the file system that it was made on


def diff(upper: Path, lowers: Sequence[Path]) -> Diff:
    """What stands in the upper folder against the layers, the topmost first. Raises Refused where it is nested too deeply."""
    try:
        with opened(upper) as (at,), opened(*lowers) as under:
            return Diff(dict(_changes(at, under, "", 0)))
    except OSError as error:
        raise Refused(f"what was changed cannot be read: {error.strerror}") from error


def _changes(at: int, under: Sequence[int], path: str, depth: int) -> Iterator[tuple[str, Changed]]:
    _not_too_deep(depth)
    names = sorted(os.listdir(at))
    if is_opaque(at):
        yield from ((f"{path}/{name}", Changed.DELETED) for name in _hidden(under) if name not in names)
        under = ()
    for name in names:
        here = os.stat(name, dir_fd=at, follow_symlinks=False)
        if is_whiteout(here):
            yield f"{path}/{name}", Changed.DELETED
        elif not stat.S_ISDIR(here.st_mode):
            yield f"{path}/{name}", Changed.WRITTEN
        else:
            yield from _inside(at, under, name, path, depth)


def _inside(at: int, under: Sequence[int], name: str, path: str, depth: int) -> Iterator[tuple[str, Changed]]:
    with ExitStack() as stack:
        lower, inside = below(stack, under, name)
        if lower is None or not stat.S_ISDIR(lower.st_mode):
            yield f"{path}/{name}", Changed.WRITTEN
            inside = []
        elif os.stat(name, dir_fd=at, follow_symlinks=False).st_mode != lower.st_mode:
            yield f"{path}/{name}", Changed.WRITTEN
        yield from _changes(hold(stack, os.open(name, FOLDER, dir_fd=at)), inside, f"{path}/{name}", depth + 1)


def _hidden(under: Sequence[int]) -> list[str]:
    """The names that layers show in a folder."""
    with ExitStack() as stack:
        return sorted(name for name in {name for folder in under for name in os.listdir(folder)} if below(stack, under, name)[0] is not None)


def _not_too_deep(depth: int) -> None:
    if depth > DEPTH:
        raise Refused(f"folders are nested more than {DEPTH} deep")


def keep(upper: Path, store: Path, *, owner: str, user: int, limit: int) -> Layer:
    """Copy an upper folder of at most `limit` bytes into the store, for a box of this owner.

    Raises Refused where it cannot be kept whole, and Broken where the store cannot take it.
    """
    target = store / f".{owner}-{secrets.token_hex(8)}"
    try:
        target.mkdir(mode=0o755)
        with opened(upper) as (source,), opened(target) as (to,):
            copy = Copy(to, user, limit)
            copy.folder(source, to, "", 0)
        name = copy.digest.hexdigest()[:24]
        return Layer(f"sha256:{copy.digest.hexdigest()}", _settle(target, store / name))
    except OSError as error:
        raise Broken(f"no layer can be kept: {error}") from error
    finally:
        shutil.rmtree(target, ignore_errors=True)


def _settle(target: Path, place: Path) -> Path:
    """Give a whole layer its name; who came first with the same content stays, also where that is none."""
    if not place.is_dir():
        try:
            target.rename(place)
        except OSError:
            if not place.is_dir():
                raise
    return place


@dataclass(slots=True)
class Copy:
    """One copy in progress. The digest is over names, kinds, modes and contents, not over times."""

    root: int
    user: int
    limit: int
    copied: int = 0
    first: dict[int, str] = field(default_factory=dict)  # inode -> where it was put first
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)

    def folder(self, source: int, to: int, path: str, depth: int) -> None:
        """All that is in a folder, then what is known of the folder."""
        _not_too_deep(depth)
        for name in sorted(os.listdir(source)):
            here = os.stat(name, dir_fd=source, follow_symlinks=False)
            self._say(b"entry", os.fsencode(name), b"%o" % here.st_mode)
            if stat.S_ISDIR(here.st_mode):
                os.mkdir(name, 0o700, dir_fd=to)
                self._enter(source, to, name, f"{path}/{name}", depth)
            elif not self._same(here, to, name, f"{path}/{name}"):
                self._entry(source, to, name, here)
        self._finish(source, to, ROOT_MODE if depth == 0 else None)
        self._say(b"end")

    def _enter(self, source: int, to: int, name: str, path: str, depth: int) -> None:
        with ExitStack() as stack:
            self.folder(hold(stack, os.open(name, FOLDER, dir_fd=source)), hold(stack, os.open(name, FOLDER, dir_fd=to)), path, depth + 1)

    def _same(self, here: os.stat_result, to: int, name: str, path: str) -> bool:
        """Another name of a file that was copied already."""
        if here.st_nlink < 2 or is_whiteout(here):
            return False
        first = self.first.setdefault(here.st_ino, path[1:])
        if first == path[1:]:
            return False
        if len(os.fsencode(first)) > PATH_BYTES:
            raise Refused("a file with several names lies too deep to be kept")
        try:
            os.link(first, name, src_dir_fd=self.root, dst_dir_fd=to, follow_symlinks=False)
        except OSError as error:
            if error.errno != errno.EMLINK:
                raise
            raise Refused("a file has more names than the store of layers can give it") from error
        self._say(b"link", os.fsencode(first))
        return True

    def _entry(self, source: int, to: int, name: str, here: os.stat_result) -> None:
        if stat.S_ISREG(here.st_mode):
            self._file(source, to, name)
            return
        if stat.S_ISLNK(here.st_mode):
            target = os.readlink(name, dir_fd=source)
            os.symlink(target, name, dir_fd=to)
            self._say(b"to", os.fsencode(target))
        else:  # a whiteout, a fifo or a socket; other devices cannot be made in a box
            if not is_whiteout(here) and (stat.S_ISCHR(here.st_mode) or stat.S_ISBLK(here.st_mode)):
                raise Refused(f"{name!r} is a device")
            os.mknod(name, here.st_mode, here.st_rdev, dir_fd=to)
        if not is_whiteout(here):
            os.chown(name, self.user, self.user, dir_fd=to, follow_symlinks=False)
            os.utime(name, ns=(here.st_mtime_ns, here.st_mtime_ns), dir_fd=to, follow_symlinks=False)

    def _file(self, source: int, to: int, name: str) -> None:
        with ExitStack() as stack:
            old = hold(stack, os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=source))
            new = hold(stack, os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=to))
            self._contents(old, new)
            self._finish(old, new)

    def _contents(self, old: int, new: int) -> None:
        """The bytes, but not the holes: a file may say that it is far longer than what it holds."""
        size, at = os.fstat(old).st_size, 0
        os.ftruncate(new, size)
        self._say(b"size", b"%d" % size)
        while (extent := _extent(old, at)) is not None:
            at, end = extent
            while at < end and (data := os.pread(old, min(CHUNK, end - at), at)):
                self._count(len(data))
                os.pwrite(new, data, at)
                self._say(b"%d" % at, data)
                at += len(data)
            if at < end:  # it was cut while we read
                break

    def _count(self, size: int) -> None:
        self.copied += size
        if self.copied > self.limit:
            raise Refused(f"more than {self.limit} bytes were changed")

    def _finish(self, old: int, new: int, own_mode: int | None = None) -> None:
        """Attributes, owner, mode and time, the time last; the mode is said as it is given, whatever became of it since the entry was read."""
        for name in sorted(os.listxattr(old)):
            if name.startswith("user.") and name not in BOOKKEEPING:
                self._attribute(old, new, name)
        about = os.fstat(old)
        os.fchown(new, self.user, self.user)
        mode = stat.S_IMODE(about.st_mode) if own_mode is None else own_mode
        os.fchmod(new, mode)
        self._say(b"%o" % mode)
        os.utime(new, ns=(about.st_mtime_ns, about.st_mtime_ns))

    def _attribute(self, old: int, new: int, name: str) -> None:
        value = os.getxattr(old, name)
        if name == OPAQUE and value != b"y":
            return
        try:
            os.setxattr(new, name, value)
        except OSError as error:
            raise Refused(f"the attribute {name!r} cannot be kept: {error.strerror}") from error
        self._say(b"attribute", os.fsencode(name), value)

    def _say(self, *parts: bytes) -> None:
        for part in parts:
            self.digest.update(b"%d:" % len(part))
            self.digest.update(part)


def _extent(descriptor: int, at: int) -> tuple[int, int] | None:
    """The next stretch that holds data."""
    try:
        start = os.lseek(descriptor, at, os.SEEK_DATA)
        return start, os.lseek(descriptor, start, os.SEEK_HOLE)
    except OSError:  # nothing but a hole to the end
        return None
