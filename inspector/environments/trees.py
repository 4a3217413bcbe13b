"""Reads a folder that a stranger made: bounded, never through a link, in a stable order."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

from inspector.environments.protocol import Unreadable

FILE_BYTES = 64 << 20
TREE_BYTES = 1 << 30
TREE_FILES = 20_000
DEPTH = 48


@dataclass(frozen=True, slots=True)
class File:
    """A regular file of a tree."""

    path: str  # relative, with forward slashes
    size: int
    executable: bool


@dataclass(frozen=True)
class Tree:
    """The regular files below a folder; what else lies there is named in `left_out`."""

    root: Path
    files: tuple[File, ...]  # sorted by path
    left_out: tuple[str, ...] = ()

    @cached_property
    def by_path(self) -> dict[str, File]:
        """Files by their relative paths."""
        return {file.path: file for file in self.files}

    def __contains__(self, path: object) -> bool:
        return path in self.by_path

    def read(self, path: str, limit: int = FILE_BYTES) -> bytes:
        """The bytes of a file of this tree. Raises Unreadable where it is gone, became a link, or is longer than `limit`."""
        return read_file(self.root, path, limit)

    def text(self, path: str, limit: int = FILE_BYTES) -> str:
        """As `read`; bytes that are not UTF-8 come as replacement characters."""
        return self.read(path, limit).decode(errors="replace")

    def below(self, folder: str) -> tuple[File, ...]:
        """The files below a folder of this tree."""
        return tuple(file for file in self.files if file.path.startswith(f"{folder}/"))

    def digest(self, paths: Iterable[str] | None = None) -> str:
        """sha256 over sorted paths, executable bits and contents, in hexadecimal."""
        chosen = self.files if paths is None else [self.by_path[path] for path in sorted(paths)]
        return digest((f"{file.path}\0{int(file.executable)}".encode(), self.read(file.path)) for file in chosen)


def digest(parts: Iterable[tuple[bytes, bytes]]) -> str:
    """sha256 over names and contents, each with its length, in hexadecimal."""
    whole = hashlib.sha256()
    for name, data in parts:
        whole.update(b"%d:%b%d:" % (len(name), name, len(data)))
        whole.update(data)
    return whole.hexdigest()


def read_tree(root: Path, *, files: int = TREE_FILES, size: int = TREE_BYTES) -> Tree:
    """List what lies below `root`. Raises Unreadable where it is no folder, or too much."""
    found: list[File] = []
    left_out: list[str] = []
    total = 0
    for number, (path, status) in enumerate(_walk(root), 1):
        if number > 2 * files:
            raise Unreadable(f"{root.name}: more than {2 * files} files, folders and links")
        if stat.S_ISDIR(status.st_mode):
            continue
        if not stat.S_ISREG(status.st_mode):
            left_out.append(f"{path} is {'a link' if stat.S_ISLNK(status.st_mode) else 'no regular file'}")
            continue
        found.append(File(path, status.st_size, bool(status.st_mode & 0o111)))
        total += status.st_size
        if status.st_size > FILE_BYTES:
            raise Unreadable(f"{root.name}/{path}: {status.st_size} bytes, more than {FILE_BYTES}")
        if len(found) > files or total > size:
            raise Unreadable(f"{root.name}: more than {files} files or {size} bytes")
    return Tree(root, tuple(sorted(found, key=lambda file: file.path)), tuple(sorted(left_out)))


def _walk(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        for name, status in _entries(root, folder):
            path = f"{folder}{name}"
            yield path, status
            if not stat.S_ISDIR(status.st_mode):
                continue
            if path.count("/") >= DEPTH:
                raise Unreadable(f"{root.name}: folders deeper than {DEPTH}")
            waiting.append(f"{path}/")


def _entries(root: Path, folder: str) -> list[tuple[str, os.stat_result]]:
    descriptor = _open(root, folder.rstrip("/"), os.O_DIRECTORY)
    try:
        with os.scandir(descriptor) as entries:
            return [(_name(root, entry.name), entry.stat(follow_symlinks=False)) for entry in islice(entries, 2 * TREE_FILES + 1)]
    except OSError as error:
        raise Unreadable(f"{root.name}/{folder}: {error.strerror}") from error
    finally:
        os.close(descriptor)


def _name(root: Path, name: str) -> str:
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise Unreadable(f"{root.name}: the file name {name!r} is not UTF-8") from error
    return name


def read_file(root: Path, path: str, limit: int = FILE_BYTES) -> bytes:
    """A regular file below `root`, no part of its path a link. Raises Unreadable."""
    descriptor = _open(root, path, os.O_NONBLOCK)
    try:
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        data = _bytes(descriptor, limit + 1) if regular else b""
    except OSError as error:
        raise Unreadable(f"{root.name}/{path}: {error.strerror}") from error
    finally:
        os.close(descriptor)
    if not regular:
        raise Unreadable(f"{root.name}/{path}: no regular file")
    if len(data) > limit:
        raise Unreadable(f"{root.name}/{path}: more than {limit} bytes")
    return data


def _bytes(descriptor: int, limit: int) -> bytes:
    with open(descriptor, "rb", closefd=False) as file:
        return file.read(limit)


def _open(root: Path, path: str, flags: int) -> int:
    """A descriptor of root/path, found part by part, so that no link on the way is followed."""
    parts = [part for part in path.split("/") if part]
    if ".." in parts or "\0" in path:
        raise Unreadable(f"{path!r} leaves its folder")
    try:
        at = os.open(root, os.O_RDONLY | os.O_CLOEXEC | (os.O_DIRECTORY if parts else flags))
        for number, part in enumerate(parts, 1):
            more = flags if number == len(parts) else os.O_DIRECTORY
            try:
                below = os.open(part, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | more, dir_fd=at)
            finally:
                os.close(at)
            at = below
    except OSError as error:
        raise Unreadable(f"{root.name}/{path}: {error.strerror}") from error
    return at
