"""Turns the body of a request into its lines, within limits that hold before the memory is spent."""

from __future__ import annotations

import asyncio
import threading
import zlib
from array import array
from collections.abc import AsyncIterable, Callable, Iterator, Sequence
from contextlib import ExitStack
from types import ModuleType, TracebackType
from typing import Any, NamedTuple, Self

import zstandard

from inspector import frames
from inspector.errors import BadSubmission, TooLarge, TooMany, Unavailable, UnknownEncoding
from inspector.frames import Buffer
from inspector.settings import Limits

gzip_codec: ModuleType
try:
    from isal import isal_zlib as gzip_codec
except ImportError:  # no wheel for this machine
    gzip_codec = zlib

_ZstdError: type[Exception] = zstandard.ZstdError
STEP = 64 << 10  # reservations grow by this much
PIECE = 256 << 10  # a larger piece is first counted, so that one full of newlines is refused before it is split
LINE_COST = 64  # bytes that a line costs on top of its own; counted as inflated, or a body of newlines would be free
ZSTD_SLICE = 256  # bytes that can inflate to at most 8 MiB: 64 blocks of 128 KiB
GZIP_SLICE = 8 << 10  # the same, at gzip's 1,032 to 1
SUSPECT_RATIO, SUSPECT_BYTES = 64, 1 << 20  # above both, a body is measured to its end before more of it is kept
INLINE_GZIP, INLINE_ZSTD, INLINE_RAW = 16 << 10, 64 << 10, 1 << 20  # what is read in the event loop; the rest goes to a thread


class InFlight:
    """The bytes of all bodies that this process holds at once. Safe in threads and in coroutines: it never waits."""

    def __init__(self, limit: int, *, retry_after_s: float = 1.0) -> None:
        self.limit = limit
        self.used = 0
        self._retry_after_s = retry_after_s
        self._lock = threading.Lock()

    def reserve(self, amount: int, *, held: int = 0) -> None:
        """Take `amount` bytes more for a body that has `held`; raises TooMany. A body that is alone is never refused, so one always gets through."""
        with self._lock:
            if self.used + amount > self.limit and self.used > held:
                raise TooMany(f"{self.used} bytes are in flight, {self.limit} is the limit", retry_after_s=self._retry_after_s)
            self.used += amount

    def release(self, amount: int) -> None:
        """Give back."""
        with self._lock:
            self.used -= amount


class Share:
    """What one body holds of the budget."""

    def __init__(self, budget: InFlight) -> None:
        self.held = 0
        self._budget = budget
        self._closed = False
        self._lock = threading.Lock()  # a cancelled request closes the share while a thread still reads its body

    def cover(self, total: int) -> None:
        """Hold at least `total` bytes; raises TooMany."""
        if total <= self.held:
            return
        with self._lock:
            if self._closed:
                raise Unavailable("the request was given up")
            amount = total - self.held if self.held == 0 else -(-(total - self.held) // STEP) * STEP
            self._budget.reserve(amount, held=self.held)
            self.held += amount

    def close(self) -> None:
        """Give everything back; a second call does nothing."""
        with self._lock:
            self._closed = True
            self._budget.release(self.held)
            self.held = 0


class Framed(NamedTuple):
    """Frames as the client sent them, and the lines in them: one frame of whole lines, or a run of frames of one long line."""

    frames: tuple[Buffer, ...]
    raw: tuple[int, ...]  # what each inflates to, bytes
    first: int  # index in Body.lines
    lines: int


class Body:
    """The lines of a request. Close it when they are stored: until then its bytes count as in flight."""

    __slots__ = ("_share", "frames", "lines", "numbers", "received_bytes", "refused")

    def __init__(self, lines: _Lines, kept: list[Framed] | None, received_bytes: int, share: Share) -> None:
        self.lines: list[bytes] = lines.lines  # without their ends; blank ones left out
        self.numbers: Sequence[int] = lines.numbers  # of each line as posted, from 0, blank ones counted
        self.refused: dict[int, str] = lines.refused  # index in `lines` -> why it was not kept; the line is then empty
        self.frames = kept  # None where the lines have to be framed anew
        self.received_bytes = received_bytes
        self._share = share

    def close(self) -> None:
        """Give back what is in flight."""
        self._share.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


async def collect(chunks: AsyncIterable[bytes], encoding: str | None, limits: Limits, budget: InFlight, *, declared_bytes: int | None = None) -> Body:
    """Read a body to its end.

    `encoding` is the Content-Encoding, `declared_bytes` the Content-Length where there is one. Raises TooLarge (the body or
    what it inflates to), UnknownEncoding, BadSubmission (broken, cut off, too wide a window) and TooMany (in flight).
    """
    codec = _codec(encoding)
    with ExitStack() as undo:
        share = Share(budget)
        undo.callback(share.close)
        received = await _receive(chunks, limits, share, declared_bytes)
        if _quick(received, codec):
            body = read(received, codec, limits, share)
        else:
            body = await asyncio.to_thread(read, received, codec, limits, share)
        undo.pop_all()
    return body


def read(received: bytearray, codec: str, limits: Limits, share: Share) -> Body:
    """Inflate and split what was received; raises as `collect`."""
    lines = _Lines(limits, share, len(received))
    kept = None
    if codec == "identity":
        for at in range(0, len(received), PIECE):
            lines.feed(bytes(memoryview(received)[at : at + PIECE]))
    elif codec == "zstd" and (spans := frames.spans(received, window=limits.zstd_window_bytes)) is not None:
        kept = _read_ours(memoryview(received), spans, lines, limits)
    else:
        _read_foreign(received, codec, lines, limits)
    lines.finish()
    return Body(lines, None if lines.altered else kept, len(received), share)


def _codec(encoding: str | None) -> str:
    name = (encoding or "identity").strip().lower()
    codec = {"": "identity", "identity": "identity", "gzip": "gzip", "x-gzip": "gzip", "zstd": "zstd"}.get(name)
    if codec is None:
        raise UnknownEncoding(f"Content-Encoding {name[:80]!r}: identity, gzip and zstd are read")
    return codec


async def _receive(chunks: AsyncIterable[bytes], limits: Limits, share: Share, declared_bytes: int | None) -> bytearray:
    if declared_bytes is not None and declared_bytes > limits.body_bytes:
        raise TooLarge(f"a body of {declared_bytes} bytes, {limits.body_bytes} is the limit")
    ahead = STEP if declared_bytes is None else 0
    share.cover(declared_bytes or ahead)
    received = bytearray()
    async for chunk in chunks:
        if len(received) + len(chunk) > limits.body_bytes:
            raise TooLarge(f"a body of more than {limits.body_bytes} bytes")
        share.cover(len(received) + len(chunk) + ahead)
        received += chunk
    return received


def _quick(received: bytearray, codec: str) -> bool:
    if codec == "gzip":
        return len(received) <= INLINE_GZIP
    if codec == "identity":
        return len(received) <= INLINE_RAW
    spans = frames.spans(received) if len(received) <= INLINE_ZSTD else None
    return spans is not None and sum(span.raw for span in spans) <= INLINE_RAW


def _read_ours(received: memoryview, spans: list[frames.Span], lines: _Lines, limits: Limits) -> list[Framed] | None:
    lines.expect(sum(span.raw for span in spans))
    kept = _Kept()
    inflate = zstandard.ZstdDecompressor(max_window_size=limits.zstd_window_bytes).decompress
    for span in spans:
        frame = received[span.start : span.end]
        try:
            raw = inflate(frame, max_output_size=span.raw)
        except zstandard.ZstdError as error:
            raise BadSubmission(f"broken zstd frame at byte {span.start}: {error}") from error
        kept.add(frame, raw, lines.feed(raw))
    return kept.framed if kept.whole and not kept.run else None


class _Kept:
    """Finds out which frames of the client can be stored as they are."""

    def __init__(self) -> None:
        self.framed: list[Framed] = []
        self.run: list[tuple[Buffer, int]] = []  # frames of a long line that has not ended yet
        self.whole = True
        self._lines = 0

    def add(self, frame: Buffer, raw: bytes, count: int) -> None:
        self.run.append((frame, len(raw)))
        if not raw.endswith(b"\n"):
            self.whole = self.whole and count == 0
            return
        held, sizes = zip(*self.run, strict=True)
        long = len(self.run) > 1
        self.whole = self.whole and (count == 1 and sum(sizes) > frames.FRAME_BYTES if long else count <= frames.FRAME_LINES)
        self.framed.append(Framed(held, sizes, self._lines, count))
        self._lines += count
        self.run.clear()


def _read_foreign(received: bytearray, codec: str, lines: _Lines, limits: Limits) -> None:
    if codec == "zstd" and received:
        head = frames.parameters(received)
        if head.window > limits.zstd_window_bytes:
            raise BadSubmission(f"a zstd window of {head.window} bytes, {limits.zstd_window_bytes} is the limit")
        lines.expect(head.raw or 0)
    measured = False
    for consumed, piece in _inflated(received, codec, limits):
        inflated = lines.inflated + len(piece)
        if not measured and inflated > SUSPECT_BYTES and inflated > SUSPECT_RATIO * consumed:
            lines.expect(_measured(received, codec, limits))
            measured = True
        lines.feed(piece)


def _measured(received: bytearray, codec: str, limits: Limits) -> int:
    """What a body inflates to, found in small pieces of which none is kept; stops above the limit."""
    total = 0
    for _, piece in _inflated(received, codec, limits, slices=8):
        total += len(piece) + LINE_COST * piece.count(b"\n")
        if total > limits.inflated_bytes:
            break
    return total


def _inflated(received: bytearray, codec: str, limits: Limits, *, slices: int = 1) -> Iterator[tuple[int, bytes]]:
    """(bytes consumed, inflated piece), in pieces of at most 8 MiB / `slices`; a member or frame cut off at the end is refused."""
    begin, size, broken = _inflater(codec, limits)
    size //= slices
    stream, members = None, 0
    for at in range(0, len(received), size):
        rest = bytes(received[at : at + size])
        while rest:
            if stream is None:
                stream, members = begin(), members + 1
                if members > frames.FRAMES:
                    raise BadSubmission(f"more than {frames.FRAMES} {codec} frames in one body")
            try:
                piece = stream.decompress(rest)
            except broken as error:
                raise BadSubmission(f"broken {codec} body at byte {at} or soon after: {error}") from error
            if piece:
                yield at + size, piece
            stream, rest = (None, stream.unused_data) if stream.eof else (stream, b"")
    if stream is not None:
        raise BadSubmission(f"the {codec} body is cut off after {len(received)} bytes")


def _inflater(codec: str, limits: Limits) -> tuple[Callable[[], Any], int, type[Exception]]:
    if codec == "gzip":
        broken: type[Exception] = gzip_codec.error
        return lambda: gzip_codec.decompressobj(31), GZIP_SLICE, broken
    return zstandard.ZstdDecompressor(max_window_size=limits.zstd_window_bytes).decompressobj, ZSTD_SLICE, _ZstdError


def _split(piece: bytes) -> list[bytes]:
    """What lies between newlines. Lines are thousands of bytes long: `find` leaps from one to the next, `split` looks at every byte."""
    parts, at, find = [], 0, piece.find
    while (end := find(b"\n", at)) >= 0:
        parts.append(piece[at:end])
        at = end + 1
    parts.append(piece[at:])
    return parts


def _too_inflated(limits: Limits) -> TooLarge:
    return TooLarge(f"the body inflates to more than {limits.inflated_bytes} bytes (each line counts {LINE_COST} more)")


class _Lines:
    """Splits what is fed to it into lines, and holds no more than the limits."""

    def __init__(self, limits: Limits, share: Share, received: int) -> None:
        self.lines: list[bytes] = []
        self.numbers = array("q")
        self.refused: dict[int, str] = {}
        self.altered = False  # whether the lines differ from the bytes between newlines: frames cannot be kept then
        self.inflated = 0
        self._limits, self._share, self._received = limits, share, received
        self._number = 0
        self._open: list[bytes] = []
        self._open_bytes = 0

    def expect(self, inflated: int) -> None:
        """Make sure that a body of so many bytes may be inflated; raises TooLarge or TooMany."""
        if inflated > self._limits.inflated_bytes:
            raise _too_inflated(self._limits)
        self._share.cover(self._received + inflated)

    def feed(self, piece: bytes) -> int:
        """Take what comes next; how many lines ended in it."""
        if len(piece) > 2 * PIECE:
            self.expect(self.inflated + len(piece) + LINE_COST * piece.count(b"\n"))
        head, *rest = _split(piece)
        self.inflated += len(piece) + LINE_COST * len(rest)
        self.expect(self.inflated)
        self._hold(head)
        if rest:
            self._end()
            for line in rest[:-1]:
                self._add(line, len(line))
            self._hold(rest[-1])
        return len(rest)

    def finish(self) -> None:
        if self._open_bytes:
            self._end()

    def _hold(self, part: bytes) -> None:
        if not part:
            return
        self._open_bytes += len(part)
        if self._open_bytes > self._limits.line_bytes + 1:  # one more for a carriage return
            self._open.clear()
        else:
            self._open.append(part)

    def _end(self) -> None:
        line = self._open[0] if len(self._open) == 1 else b"".join(self._open)
        size = self._open_bytes
        self._open, self._open_bytes = [], 0
        self._add(line, size)

    def _add(self, line: bytes, size: int) -> None:
        number = self._number
        self._number += 1
        if line.endswith(b"\r"):
            line, size, self.altered = line[:-1], size - 1, True
        if size > self._limits.line_bytes:
            self.refused[len(self.lines)] = f"a line of {size} bytes, {self._limits.line_bytes} is the limit"
            line, self.altered = b"", True
        elif not line or line.isspace():
            self.altered = True
            return
        self.lines.append(line)
        self.numbers.append(number)
