"""The form of a segment file: stretches, each a header in a skippable zstd frame and then the data frames that it describes."""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import NamedTuple, Protocol
from uuid import UUID

import msgspec
import zstandard

from inspector import frames
from inspector.bodies import Framed
from inspector.errors import InspectorError
from inspector.frames import Buffer

checksums: ModuleType
try:
    from isal import isal_zlib as checksums
except ImportError:  # no wheel for this machine; the same polynomial at a quarter of the speed
    checksums = zlib

MAGIC = 0x184D2A50  # a skippable frame: `zstd -d` of a segment file gives plain NDJSON
VERSION = 1
TAG, ERASED = b"insp", b"gone"
PREFIX = struct.Struct("<II4sI")  # magic, bytes that follow them, tag, crc32 of the header
HEADER_BYTES = 64 << 20  # more is no header of ours
NO_KEY = UUID(int=0)


class CorruptSegment(InspectorError):
    """Stored bytes that are not what was written."""

    def __init__(self, file: object, offset: int, reason: str) -> None:
        self.file = file
        self.offset = offset
        super().__init__(f"{file} at byte {offset}: {reason}")


class Lines(Protocol):
    """What stretches are made from: a `bodies.Body`, or single posts put together."""

    @property
    def lines(self) -> Sequence[bytes]: ...
    @property
    def refused(self) -> Mapping[int, str]: ...
    @property
    def frames(self) -> Sequence[Framed] | None: ...


class Location(NamedTuple):
    """Where a line is stored."""

    segment: int  # unix ms << 21 | 21 random bits
    offset: int  # of the header of its stretch
    line: int  # within the stretch


class Stretch(NamedTuple):
    """Lines that are written together: up to 24 in one frame, or one long line over several."""

    received_ms: int  # unix
    keys: tuple[UUID, ...]  # NO_KEY for a line without a row
    lengths: tuple[int, ...]  # of the lines without their newlines
    frames: tuple[Buffer, ...]
    raw: tuple[int, ...]  # what each frame inflates to
    offsets: array[int] | None = None  # of the steps of a long line, and of the end of their list
    positions: tuple[int, ...] = ()  # of the lines in the body that they came from; not stored
    void: tuple[UUID, ...] = ()  # of lines written before, that were not acknowledged after all


class Header(msgspec.Struct, frozen=True, array_like=True):
    """What is stored of a stretch beside its frames."""

    version: int
    project: bytes
    received_ms: int
    keys: bytes
    lengths: list[int]
    frames: list[tuple[int, int, int]]  # compressed bytes, raw bytes, crc32 of the compressed ones
    steps: int = -1  # how many there are; -1 where nobody looked
    index: bytes = b""  # their offsets: differences as little-endian int32, compressed
    void: bytes = b""  # keys of lines that stand before it, here or in another file, and were not acknowledged

    @property
    def data_bytes(self) -> int:
        """All frames together."""
        return sum(frame[0] for frame in self.frames)

    def key(self, line: int) -> UUID | None:
        """None for a line without a row."""
        key = UUID(bytes=self.keys[16 * line : 16 * line + 16])
        return None if key == NO_KEY else key


def stretches_of(body: Lines, keys: Sequence[UUID | None], received_ms: int, *, level: int = 1) -> list[Stretch]:
    """The stretches of those lines of a body that have a key, one key per line. The client's frames are kept byte for byte where they can be."""
    if len(keys) != len(body.lines):
        raise ValueError(f"{len(keys)} keys for {len(body.lines)} lines")
    if body.frames is not None:
        return [_kept(body, framed, keys, received_ms) for framed in body.frames if any(keys[framed.first : framed.first + framed.lines])]
    return list(_framed_anew(body, keys, received_ms, level))


def located(stretches: Sequence[Stretch], locations: Sequence[Sequence[Location]]) -> dict[int, Location]:
    """Position of a line in its body -> where `append` put it."""
    return {at: place for stretch, places in zip(stretches, locations, strict=True) for at, place in zip(stretch.positions, places, strict=True)}


def encode(project: UUID, stretch: Stretch) -> list[Buffer]:
    """The bytes of a stretch, in pieces."""
    body = msgspec.msgpack.encode(_header(project, stretch))
    return [PREFIX.pack(MAGIC, PREFIX.size - 8 + len(body), TAG, checksums.crc32(body)), body, *stretch.frames]


def decode(read: Callable[[int, int], bytes], file: object, offset: int) -> tuple[Header | None, int]:
    """The header at `offset` (None where the stretch was erased) and where its data begin. `read(at, size)` may give less at the end of the file."""
    start = read(offset, 1024)  # the header of 24 short lines is about 600 bytes
    if len(start) < PREFIX.size:
        raise CorruptSegment(file, offset, "the file ends inside a header")
    magic, size, tag, crc = PREFIX.unpack_from(start)
    if magic == MAGIC and tag == ERASED:
        return None, offset + 8 + size
    if magic != MAGIC or tag != TAG or not PREFIX.size - 8 <= size <= HEADER_BYTES:
        raise CorruptSegment(file, offset, "no stretch begins here")
    body = start[PREFIX.size : 8 + size] if 8 + size <= len(start) else read(offset + PREFIX.size, size - PREFIX.size + 8)
    if checksums.crc32(body) != crc:
        raise CorruptSegment(file, offset, "the header does not match its checksum")
    return _parse(body, file, offset), offset + 8 + size


def inflate(frame: Buffer, raw: int, crc: int) -> bytes:
    """One frame; raises ValueError when it is not the one that was written."""
    if checksums.crc32(frame) != crc:
        raise ValueError("a frame does not match its checksum")
    try:
        line = zstandard.ZstdDecompressor(max_window_size=frames.WINDOW).decompress(frame, max_output_size=raw)
    except zstandard.ZstdError as error:
        raise ValueError(f"a frame cannot be read: {error}") from error
    if len(line) != raw:
        raise ValueError(f"a frame inflates to {len(line)} bytes, not {raw}")
    return line


def offsets_of(header: Header) -> array[int]:
    """The differences between the offsets of a long line's steps: their running sums are the offsets. Raises ValueError."""
    size = 4 * (header.steps + 1)
    try:
        raw = zstandard.ZstdDecompressor().decompress(header.index, max_output_size=size)
    except zstandard.ZstdError as error:
        raise ValueError(f"the step index cannot be read: {error}") from error
    if len(raw) != size:
        raise ValueError(f"the step index has {len(raw)} bytes, not {size}")
    return _swapped(array("i", raw))


def _header(project: UUID, stretch: Stretch) -> Header:
    sizes = [(len(frame), raw, checksums.crc32(frame)) for frame, raw in zip(stretch.frames, stretch.raw, strict=True)]
    keys = b"".join(key.bytes for key in stretch.keys)
    void = b"".join(key.bytes for key in stretch.void)
    header = Header(VERSION, project.bytes, stretch.received_ms, keys, list(stretch.lengths), sizes, void=void)
    if stretch.offsets is None:
        return header
    differences = array("i", (after - before for before, after in zip((0, *stretch.offsets), stretch.offsets, strict=False)))
    index = zstandard.ZstdCompressor(level=3).compress(_swapped(differences).tobytes())
    return msgspec.structs.replace(header, steps=len(stretch.offsets) - 1, index=index)


def _swapped(numbers: array[int]) -> array[int]:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _parse(body: bytes, file: object, offset: int) -> Header:
    try:
        header = msgspec.msgpack.decode(body, type=Header)
    except msgspec.MsgspecError as error:
        raise CorruptSegment(file, offset, f"the header cannot be read: {error}") from error
    if header.version != VERSION:
        raise CorruptSegment(file, offset, f"a stretch of version {header.version}, this program reads {VERSION}")
    if len(header.keys) != 16 * len(header.lengths) or sum(frame[1] for frame in header.frames) != sum(header.lengths) + len(header.lengths):
        raise CorruptSegment(file, offset, "the sizes in the header contradict each other")
    return header


def _kept(body: Lines, framed: Framed, keys: Sequence[UUID | None], received_ms: int) -> Stretch:
    positions = tuple(range(framed.first, framed.first + framed.lines))
    offsets = frames.step_offsets(body.lines[framed.first]) if len(framed.frames) > 1 else None
    return _stretch(body.lines, positions, keys, received_ms, framed.frames, framed.raw, offsets)


def _framed_anew(body: Lines, keys: Sequence[UUID | None], received_ms: int, level: int) -> Iterator[Stretch]:
    wanted = [at for at, key in enumerate(keys) if key is not None and at not in body.refused]
    compressor = zstandard.ZstdCompressor(level=level, write_content_size=True)
    for run in frames.runs([body.lines[at] for at in wanted]):
        packed = tuple(compressor.compress(piece) for piece in run.pieces)
        positions = tuple(wanted[run.first : run.first + run.lines])
        yield _stretch(body.lines, positions, keys, received_ms, packed, tuple(len(piece) for piece in run.pieces), run.offsets)


def _stretch(
    lines: Sequence[bytes],
    positions: tuple[int, ...],
    keys: Sequence[UUID | None],
    received_ms: int,
    packed: tuple[Buffer, ...],
    raw: tuple[int, ...],
    offsets: array[int] | None,
) -> Stretch:
    named = tuple(keys[at] or NO_KEY for at in positions)
    return Stretch(received_ms, named, tuple(len(lines[at]) for at in positions), packed, raw, offsets, positions)
