"""An open segment file, of which nothing is given that was not checked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from inspector import frames
from inspector.frames import Buffer
from inspector.store.segments.places import WRITE_BYTES, unreadable
from inspector.store.stretches import ERASED, MAGIC, PREFIX, CorruptSegment, Header, decode, inflate, offsets_of


class StepWindow(NamedTuple):
    """A few steps of a trajectory, as they were sent."""

    total: int  # 0 as well where the line has no list of steps
    steps: list[bytes]


class SegmentFile:
    """An open segment file; everything that it gives was checked."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    @property
    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def header(self, offset: int, project: UUID) -> tuple[Header, int]:
        header, data = decode(self._read, self._path, offset)
        if header is None:
            raise CorruptSegment(self._path, offset, "this stretch was erased")
        if header.project != project.bytes:
            raise CorruptSegment(self._path, offset, f"a stretch of project {header.project.hex()}, not {project.hex}")
        return header, data

    def next_header(self, offset: int) -> tuple[Header | None, int]:
        """(header, where its data begin); None where the stretch was erased."""
        return decode(self._read, self._path, offset)

    def lines(self, offset: int, header: Header, data: int) -> list[bytes]:
        return self.some_lines(offset, header, data, range(len(header.lengths)))

    def some_lines(self, offset: int, header: Header, data: int, wanted: Sequence[int]) -> list[bytes]:
        raw = self._inflated(offset, header, data, 0, len(header.frames))
        if any(not 0 <= at < len(header.lengths) for at in wanted):
            raise CorruptSegment(self._path, offset, f"no line {max(wanted)} in a stretch of {len(header.lengths)}")
        starts, at = [], 0
        for length in header.lengths:
            starts.append(at)
            at += length + 1
        return [raw[starts[line] : starts[line] + header.lengths[line]] for line in wanted]

    def long_window(self, offset: int, header: Header, data: int, start: int, count: int) -> StepWindow:
        total = header.steps
        if total < 0:
            return StepWindow(0, [])
        start, end = min(start, total), min(start + count, total)
        if start == end:
            return StepWindow(total, [])
        try:
            differences = offsets_of(header)
        except ValueError as error:
            raise CorruptSegment(self._path, offset, str(error)) from error
        first = sum(differences[: start + 1])
        return StepWindow(total, frames.steps_within(self._raw_between(offset, header, data, first, first + sum(differences[start + 1 : end + 1]))))

    def _raw_between(self, offset: int, header: Header, data: int, begin: int, end: int) -> bytes:
        """Bytes [begin, end) of what the frames inflate to, from the frames that hold them."""
        at, first, base, last = 0, 0, 0, 0
        for number, (_, raw, _) in enumerate(header.frames):
            if at <= begin:
                first, base = number, at
            if at < end:
                last = number
            at += raw
        return self._inflated(offset, header, data, first, last + 1)[begin - base : end - base]

    def _inflated(self, offset: int, header: Header, data: int, first: int, last: int) -> bytes:
        data += sum(frame[0] for frame in header.frames[:first])
        wanted = header.frames[first:last]
        read = memoryview(self._read(data, sum(frame[0] for frame in wanted)))
        pieces, at = [], 0
        for size, raw, crc in wanted:
            pieces.append(self._checked(offset, read[at : at + size], raw, crc))
            at += size
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _checked(self, offset: int, frame: Buffer, raw: int, crc: int) -> bytes:
        try:
            return inflate(frame, raw, crc)
        except ValueError as error:
            raise CorruptSegment(self._path, offset, str(error)) from error

    def whole(self, offset: int, size: int) -> tuple[Header | None, int] | None:
        """(header, end) of the stretch at `offset`; None where the file ends or its tail is torn; raises CorruptSegment."""
        start = self._read(offset, PREFIX.size)
        end = offset + 8 + int.from_bytes(start[4:8], "little")
        if len(start) < PREFIX.size or end > size:
            return None
        try:
            header, end = decode(self._read, self._path, offset)
            if header is not None and end + header.data_bytes > size:
                return None
            for length, raw, crc in header.frames if header is not None else ():
                end += length
                self._checked(offset, self._read(end - length, length), raw, crc)
        except CorruptSegment:
            if self._written(size) < max(end, offset + PREFIX.size):
                return None
            raise
        return header, end

    def _written(self, size: int) -> int:
        """Where the zeros begin in which the file ends: after a crash what was never written reads as zeros."""
        while size:
            block = self._read(max(size - (64 << 10), 0), min(size, 64 << 10))
            if kept := len(block.rstrip(b"\0")):
                return size - len(block) + kept
            size -= len(block)
        return 0

    def _read(self, at: int, size: int) -> bytes:
        read = os.pread(self._descriptor, size, at)
        while 0 < len(read) < size and (more := os.pread(self._descriptor, size - len(read), at + len(read))):
            read += more
        return read


@contextmanager
def opened(path: Path, offset: int) -> Iterator[SegmentFile]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise CorruptSegment(path, offset, "the file is missing") from error
    except OSError as error:
        raise unreadable(path, error) from error
    try:
        yield SegmentFile(path, descriptor)
    except OSError as error:
        raise unreadable(path, error) from error
    finally:
        os.close(descriptor)


def blank(path: Path, offset: int) -> None:
    with opened(path, offset) as file:
        header, end = decode(file._read, path, offset)
    if header is not None:
        end += header.data_bytes
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        # The mark comes first: from then on every reader passes over the stretch, whenever the zeros come.
        os.pwrite(descriptor, PREFIX.pack(MAGIC, end - offset - 8, ERASED, 0), offset)
        os.fdatasync(descriptor)
        for at in range(offset + PREFIX.size, end, WRITE_BYTES):
            os.pwrite(descriptor, bytes(min(WRITE_BYTES, end - at)), at)
        os.fdatasync(descriptor)
    finally:
        os.close(descriptor)
