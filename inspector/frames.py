"""The zstd frames of whole NDJSON lines in which trajectories travel and are stored.

A frame declares its size, inflates to at most FRAME_BYTES, holds at most FRAME_LINES whole lines and needs a window of at
most WINDOW. A line longer than FRAME_BYTES has a run of frames to itself, cut between steps where that is possible, so that
a few steps of a long trajectory can be read without the rest.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import zstandard

from inspector.errors import BadSubmission
from inspector.trajectory import Source

FRAME_BYTES = 512 << 10  # inflated
FRAME_LINES = 24
WINDOW = 8 << 20
FRAME_BLOCKS = 64  # a frame of ours needs about five, or one per line if it is flushed so; more is an attack on the walk
SMALL_BLOCKS, BLOCK_BYTES = 8, 32  # beyond so many blocks they have this size on average, for the same reason
FRAMES = 1 << 16  # in one body
COMMAS = 4 << 20  # above this a line is first shown to hold steps and not a bomb of tiny elements, each an object of ours
STEP_BYTES = 24  # of a long line per step; the shortest step that is one has 29

Buffer = bytes | bytearray | memoryview


class BrokenFrame(BadSubmission):
    """Bytes that are no zstd frame, or only the beginning of one."""


class Parameters(NamedTuple):
    """What the header of a frame says; sizes in bytes."""

    header: int  # of the header itself
    raw: int | None  # inflated, where declared
    window: int
    dictionary: int
    checksum: bool


class Span(NamedTuple):
    """Where a frame lies in a buffer, and what it inflates to."""

    start: int
    end: int
    raw: int


class Run(NamedTuple):
    """Lines that belong together: one piece per frame, each of the lines ended by a newline."""

    first: int  # the number of the first line
    lines: int
    pieces: tuple[Buffer, ...]
    offsets: array[int] | None = None  # of the steps, for a line that needs several frames and has steps


def pack(lines: Sequence[bytes], level: int = 1) -> list[bytes]:
    """Compress lines (without their newlines) into frames. Raises BadSubmission for an empty line or one with a newline in it."""
    compressor = zstandard.ZstdCompressor(level=level, write_content_size=True, write_checksum=True)
    return [compressor.compress(piece) for run in runs(lines) for piece in run.pieces]


def runs(lines: Sequence[bytes]) -> Iterator[Run]:
    """Group lines so that each run obeys the limits of a frame, or is one long line in several pieces."""
    first = held = 0
    for number, line in enumerate(lines):
        size = _size(number, line)
        if number > first and (held + size > FRAME_BYTES or number - first == FRAME_LINES):
            yield _short(lines, first, number)
            first, held = number, 0
        if size > FRAME_BYTES:
            yield _long(number, line)
            first = number + 1
        else:
            held += size
    if first < len(lines):
        yield _short(lines, first, len(lines))


def parameters(buffer: Buffer, at: int = 0) -> Parameters:
    """Read the frame header at `at`; raises BrokenFrame."""
    head = bytes(buffer[at : at + 18])
    try:
        found = zstandard.get_frame_parameters(head)
        size = zstandard.frame_header_size(head)
    except zstandard.ZstdError as error:
        raise BrokenFrame(f"no zstd frame at byte {at}: {error}") from error
    raw = None if found.content_size == zstandard.CONTENTSIZE_UNKNOWN else found.content_size
    return Parameters(size, raw, found.window_size, found.dict_id, found.has_checksum)


def frame_end(buffer: Buffer, at: int = 0, *, blocks: int = FRAME_BLOCKS) -> int:
    """Where the frame at `at` ends, by its block headers alone; raises BrokenFrame when it is cut off or has more blocks than that."""
    return _end(buffer, at, parameters(buffer, at), blocks)


def _end(buffer: Buffer, at: int, head: Parameters, blocks: int) -> int:
    end = at + head.header
    for block in range(blocks):
        if block > SMALL_BLOCKS and end - at < block * BLOCK_BYTES:
            raise BrokenFrame(f"the zstd frame at byte {at} is made of tiny blocks")
        word = int.from_bytes(buffer[end : end + 3], "little")
        end += 3 + (1 if word >> 1 & 3 == 1 else word >> 3)
        if end > len(buffer):
            raise BrokenFrame(f"the zstd frame at byte {at} is cut off")
        if word & 1:
            end += 4 * head.checksum
            break
    else:
        raise BrokenFrame(f"the zstd frame at byte {at} has more than {blocks} blocks")
    if end > len(buffer):
        raise BrokenFrame(f"the zstd frame at byte {at} is cut off")
    return end


def spans(buffer: Buffer, *, window: int = WINDOW) -> list[Span] | None:
    """The frames of a buffer, or None when not all of them obey the limits (or are frames at all)."""
    found: list[Span] = []
    at = 0
    try:
        while at < len(buffer):
            head = parameters(buffer, at)
            if not head.raw or head.raw > FRAME_BYTES or head.window > min(window, WINDOW) or head.dictionary or len(found) == FRAMES:
                return None
            end = _end(buffer, at, head, FRAME_BLOCKS)
            found.append(Span(at, end, head.raw))
            at = end
    except BrokenFrame:
        return None  # whoever reads the buffer as a foreign one says what is wrong with it
    return found


class _Steps(msgspec.Struct):
    steps: list[msgspec.Raw]


class _Line(msgspec.Struct):
    trajectory: _Steps


class _Sourced(msgspec.Struct, gc=False):
    source: Source


class _SourcedSteps(msgspec.Struct, gc=False):
    steps: list[_Sourced]


class _SourcedLine(msgspec.Struct, gc=False):
    trajectory: _SourcedSteps


_line = msgspec.json.Decoder(_Line)
_sourced_line = msgspec.json.Decoder(_SourcedLine)
_raws = msgspec.json.Decoder(list[msgspec.Raw])
_LIST = re.compile(rb'"steps"[ \t\r\n]*:[ \t\r\n]*\[')
_GAP = re.compile(rb"[ \t\r\n,]*")


def step_offsets(line: bytes) -> array[int] | None:
    """Where each step of the line begins, then where the list ends (its `]`).

    None when the line has no list of steps, or one that is a bomb of tiny elements and no trajectory.
    """
    try:
        if len(line) > 2 * COMMAS and line.count(b",") > COMMAS:
            _sourced_line.decode(line)
        steps = _line.decode(line).trajectory.steps
    except (msgspec.MsgspecError, RecursionError):
        return None
    if len(line) > FRAME_BYTES and len(steps) * STEP_BYTES > len(line):
        return None
    to_compare = 2 * len(line)  # bounds the time that a line full of false beginnings can take
    for begin in _LIST.finditer(line):
        offsets, compared = _walk(line, begin.end(), steps)
        if offsets is not None:
            return offsets
        to_compare -= compared
        if to_compare < 0:
            break
    return None


def _walk(line: bytes, at: int, steps: list[msgspec.Raw]) -> tuple[array[int] | None, int]:
    """The offsets, if exactly these steps stand in a list that begins at `at`; and how many bytes were compared to know."""
    offsets, begin, gap = array("q"), at, _GAP.match
    for raw in steps:
        step = bytes(raw)
        at = gap(line, at).end()  # type: ignore[union-attr]  # an empty gap matches too
        if not line.startswith(step, at):
            return None, at + len(step) - begin
        offsets.append(at)
        at += len(step)
    at = gap(line, at).end()  # type: ignore[union-attr]
    offsets.append(at)
    return (offsets if line.startswith(b"]", at) else None), at - begin


def steps_within(region: bytes) -> list[bytes]:
    """The steps of a stretch of a list that begins with a step and ends where another one, or the list's end, begins."""
    return [bytes(raw) for raw in _raws.decode(b"[%b]" % region.rstrip(b" \t\r\n,"))]


def _size(number: int, line: bytes) -> int:
    if not line or b"\n" in line:
        raise BadSubmission("an empty line" if not line else "a line with a newline in it", path=f"line {number}")
    return len(line) + 1


def _short(lines: Sequence[bytes], first: int, end: int) -> Run:
    return Run(first, end - first, (b"\n".join([*lines[first:end], b""]),))


def _long(number: int, line: bytes) -> Run:
    offsets = step_offsets(line)
    view, pieces, at = memoryview(line), list[Buffer](), 0
    while len(line) + 1 - at > FRAME_BYTES:
        border = at + FRAME_BYTES
        if offsets is not None and (last := bisect_right(offsets, border) - 1) >= 0 and offsets[last] > at:
            border = offsets[last]
        pieces.append(view[at:border])
        at = border
    return Run(number, 1, (*pieces, bytes(view[at:]) + b"\n"), offsets)
