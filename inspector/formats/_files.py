"""Opens what may hold trajectories, plain or compressed, without ever reading more than it should.

A file is rows (JSON Lines, one JSON document, or a list in one), an archive (zip) or a folder. Which of these it is, and
how it is compressed, is told by its content alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec
import zstandard

from inspector.errors import UnreadableInput
from inspector.formats._json import NotJson, decode
from inspector.settings import Limits

LINE_BYTES = Limits().line_bytes
DOCUMENT_BYTES = 256 << 20
INFLATED_BYTES = 1 << 30  # a file may always inflate to so much, and to more only if
INFLATED_RATIO = 200  # it is not this many times its size: JSON never is, a bomb always
ZSTD_WINDOW = 128 << 20  # what `zstd --long` writes
_READ = 64 << 10
_ZSTD_READ = 2 << 10  # a zstd block of 4 bytes may hold 128 KiB: so at most 64 MiB come out of one piece
_PEEKED_ROWS = 20
_NOT_READ = {b"PAR1": "Parquet", b"\x80\x02": "a Python pickle", b"\x80\x03": "a Python pickle", b"\x80\x04": "a Python pickle", b"\x80\x05": "a Python pickle"}


class Row(NamedTuple):
    """One JSON value of a file."""

    source: str  # file:line
    raw: bytes
    value: Any
    lost: list[str]
    at: int  # its place among the values of the file, from 0


class Refused(msgspec.Struct, frozen=True):
    """A part of a file that could not be read, among others that could."""

    source: str  # file:line
    reason: str


class Kind(StrEnum):
    """What a path holds, by its content."""

    FOLDER = "folder"
    ARCHIVE = "archive"
    ROWS = "rows"


@dataclass(frozen=True)
class Peek:
    """What an importer may look at to tell whether a path is of its format."""

    path: Path
    kind: Kind
    first: dict[str, Any] = field(default_factory=dict)  # the first JSON object of rows


class _Broken(Exception):
    """The compressed stream is damaged or goes too far."""


def peek(path: Path) -> Peek:
    """Look at the beginning of `path`. Raises UnreadableInput."""
    if path.is_dir():
        return Peek(path, Kind.FOLDER)
    head = _head(path)
    if head.startswith(b"PK\x03\x04"):
        return Peek(path, Kind.ARCHIVE)
    found = (row.value for row in islice(rows(path), _PEEKED_ROWS) if isinstance(row, Row))
    return Peek(path, Kind.ROWS, next((value for value in found if isinstance(value, dict)), {}))


def _head(path: Path) -> bytes:
    if not path.is_file():
        raise UnreadableInput(f"{path}: {'not a regular file' if path.exists() else 'no such file'}")
    with _opened(path) as file:
        head = file.read(8)
    for magic, name in _NOT_READ.items():
        if head.startswith(magic):
            raise UnreadableInput(f"{path}: this is {name}, which is not read; export it as JSON Lines")
    return head


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise UnreadableInput(f"{path}: {error.strerror}") from error


def rows(path: Path) -> Iterator[Row | Refused]:
    """Every JSON value of a file, whether it is JSON Lines or one document. Raises UnreadableInput naming file, line and why."""
    _head(path)
    if _is_lines(path):
        yield from _numbered(_line_values(path))
    else:
        yield from _numbered(_document_values(path))


Value = tuple[str, bytes, Any, list[str]]


def _numbered(values: Iterable[Value | Refused]) -> Iterator[Row | Refused]:
    index = 0
    for value in values:
        if isinstance(value, Refused):
            yield value
            continue
        for source, raw, one, lost in _elements(*value):
            yield Row(source, raw, one, lost, index)
            index += 1


def _elements(source: str, raw: bytes, value: Any, lost: list[str]) -> Iterator[Value]:
    """The elements of a list of objects, one by one; but a list of messages is one conversation."""
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value) or any("role" in one for one in value):
        yield source, raw, value, lost
        return
    for at, one in enumerate(value):
        yield f"{source}[{at}]", msgspec.json.encode(one), one, [entry for entry in lost if entry.startswith(f"$[{at}]")]


def _is_lines(path: Path) -> bool:
    """Whether the first line, or one soon after it, is a JSON value of its own, and the whole is not."""
    first = [line for _, line in islice(_lines(path), 3)]
    if not first:
        raise UnreadableInput(f"{path}: is empty")
    if first[0] is not None and _is_json(first[0]):
        return True
    return not _is_document(path) and any(line is not None and _is_object(line) for line in first[1:])


def _is_json(line: bytes) -> bool:
    try:
        decode(line)
    except NotJson:
        return False
    return True


def _is_object(line: bytes) -> bool:
    return line.startswith(b"{") and _is_json(line)


def _is_document(path: Path) -> bool:
    try:
        return _is_json(whole(path))
    except UnreadableInput:
        return False


def _line_values(path: Path) -> Iterator[Value | Refused]:
    for number, line in _lines(path):
        source = f"{path}:{number}"
        if line is None:
            yield Refused(source, f"the line is longer than {LINE_BYTES >> 20} MiB")
            continue
        try:
            yield source, line, *decode(line)
        except NotJson as error:
            yield Refused(source, error.reason)


def _document_values(path: Path) -> Iterator[Value]:
    raw = whole(path).strip()
    try:
        yield f"{path}:1", raw, *decode(raw)
    except NotJson as error:
        raise UnreadableInput(f"{path}:{error.line}: {error.reason}") from error


def whole(path: Path, limit: int = DOCUMENT_BYTES) -> bytes:
    """All of a file, decompressed; at most `limit` bytes. Raises UnreadableInput."""
    pieces, size = [], 0
    try:
        for piece in _chunks(path):
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                raise UnreadableInput(f"{path}: one document of more than {limit >> 20} MiB")
    except _Broken as error:
        raise UnreadableInput(f"{path}: {error}") from error
    return b"".join(pieces)


def _lines(path: Path) -> Iterator[tuple[int, bytes | None]]:
    """(number, line) of the lines that are not blank; None for one that is too long."""
    number, size = 1, 0
    parts: list[bytes] = []
    try:
        for chunk in _chunks(path):
            *ended, rest = chunk.split(b"\n")
            for piece in ended:
                if (line := _joined(parts, size, piece)) != b"":
                    yield number, line
                number, parts, size = number + 1, [], 0
            size += len(rest)
            parts = [*parts, rest] if size <= LINE_BYTES else []
    except _Broken as error:
        raise UnreadableInput(f"{path}:{number}: {error}") from error
    if (line := _joined(parts, size, b"")) != b"":
        yield number, line


def _joined(parts: list[bytes], size: int, last: bytes) -> bytes | None:
    return None if size + len(last) > LINE_BYTES else b"".join([*parts, last]).strip()


def _chunks(path: Path) -> Iterator[bytes]:
    """The bytes of a file, decompressed, in pieces; stops a bomb."""
    with _opened(path) as file:
        allowed = max(INFLATED_BYTES, INFLATED_RATIO * path.stat().st_size)
        head = file.read(4)
        file.seek(0)
        inflate = _gzip if head.startswith(b"\x1f\x8b") else _zstd if head == b"\x28\xb5\x2f\xfd" else _plain
        size = 0
        for piece in inflate(file):
            size += len(piece)
            if inflate is not _plain and size > allowed:
                raise _Broken(f"inflates to more than {allowed >> 20} MiB, {INFLATED_RATIO} times its size")
            yield piece


def _plain(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(_READ):
        yield piece


def _gzip(file: BinaryIO) -> Iterator[bytes]:
    stream = zlib.decompressobj(wbits=31)
    data = file.read(_READ)
    while data:
        try:
            piece = stream.decompress(data, _READ * 16)
        except zlib.error as error:
            raise _Broken(f"damaged gzip: {error}") from error
        yield piece
        data = stream.unconsumed_tail or stream.unused_data or file.read(_READ)
        if stream.eof and data:
            stream = zlib.decompressobj(wbits=31)  # the next member
    if not stream.eof:
        raise _Broken("the gzip stream is cut short")


def _zstd(file: BinaryIO) -> Iterator[bytes]:
    opener = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW)
    stream, data = opener.decompressobj(), file.read(_ZSTD_READ)
    while data:
        try:
            yield stream.decompress(data)
        except zstandard.ZstdError as error:
            raise _Broken(f"damaged zstd: {error}") from error
        data = (stream.unused_data if stream.eof else b"") or file.read(_ZSTD_READ)
        if stream.eof and data:
            stream = opener.decompressobj()  # the next frame
    if not stream.eof:
        raise _Broken("the zstd stream is cut short")
