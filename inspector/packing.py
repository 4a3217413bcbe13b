"""Packs an environment version into one plain tar that is the same for the same files, and unpacks what a stranger packed."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple, cast

from inspector.environments.protocol import Unreadable
from inspector.environments.trees import DEPTH, FILE_BYTES, TREE_BYTES, TREE_FILES, read_file, read_tree

PACKAGE_BYTES = 256 << 20  # of a whole tar
PIECE = 1 << 20


class Packed(NamedTuple):
    """What was packed."""

    sha256: str
    length: int
    left_out: Sequence[str]  # links and other things that are no files, with what they are


def pack(sources: Sequence[Path], out: IO[bytes]) -> Packed:
    """Write files and folders, each under its own name, into a tar: sorted, without times and owners. Raises Unreadable where it is too much."""
    left_out: list[str] = []
    whole = _Digesting(out)
    with tarfile.open(fileobj=cast(IO[bytes], whole), mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for name, executable, data in sorted(_files(sources, left_out), key=lambda one: one[0]):
            about = tarfile.TarInfo(name)
            about.size, about.mode = len(data), 0o755 if executable else 0o644
            tar.addfile(about, io.BytesIO(data))
    return Packed(whole.seen.hexdigest(), whole.length, left_out)


def _files(sources: Sequence[Path], left_out: list[str]) -> Iterator[tuple[str, bool, bytes]]:
    for source in (path.resolve() for path in sources):
        if source.is_dir():
            tree = read_tree(source, size=PACKAGE_BYTES)
            left_out += [f"{source.name}/{one}" for one in tree.left_out]
            yield from ((f"{source.name}/{file.path}", file.executable, tree.read(file.path)) for file in tree.files)
        else:
            yield source.name, False, read_file(source.parent, source.name, PACKAGE_BYTES)


class _Digesting:
    """A file to write to that is digested on the way."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self.seen = hashlib.sha256()
        self.length = 0

    def write(self, piece: bytes) -> int:
        self.length += len(piece)
        if self.length > PACKAGE_BYTES:
            raise Unreadable(f"a package of more than {PACKAGE_BYTES} bytes")
        self.seen.update(piece)
        return self._out.write(piece)


def unpack(tar: IO[bytes], folder: Path) -> None:
    """Put the files of a tar below an empty folder. Raises Unreadable for what is no file, leaves the folder, or is too much; some may be there then."""
    try:
        with tarfile.open(fileobj=tar, mode="r:") as opened:
            for member in _bounded(opened):
                opened.extract(member, folder, filter="data")
    except (tarfile.TarError, OSError, ValueError, OverflowError, RecursionError) as error:
        raise Unreadable(f"the package cannot be unpacked: {type(error).__name__}: {str(error)[:200]}") from error


def _bounded(opened: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    size, folders = 0, set[str]()
    for number, member in enumerate(opened, 1):
        size += member.size
        if member.name.count("/") > DEPTH + 1:
            raise Unreadable(f"the package holds folders deeper than {DEPTH}")
        folders |= {str(parent) for parent in PurePosixPath(member.name).parents}
        if not (member.isreg() or member.isdir()) or member.issparse():
            raise Unreadable(f"the package holds {member.name!r:.200}, which is neither a plain file nor a folder")
        if max(number, len(folders)) > TREE_FILES or size > TREE_BYTES or member.size > max(FILE_BYTES, PACKAGE_BYTES):
            raise Unreadable(f"the package holds more than {TREE_FILES} files or {TREE_BYTES} bytes")
        yield member
