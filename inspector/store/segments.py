"""Writes stretches of lines to segment files so that they last, and reads them back."""

from __future__ import annotations

import errno
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, Self
from uuid import UUID

from inspector import frames
from inspector.errors import StorageFull, Unavailable
from inspector.frames import Buffer
from inspector.store.stretches import (
    ERASED,
    MAGIC,
    NO_KEY,
    PREFIX,
    CorruptSegment,
    Header,
    Location,
    Stretch,
    decode,
    encode,
    inflate,
    located,
    offsets_of,
    stretches_of,
)

__all__ = [
    "CorruptSegment",
    "Location",
    "SegmentReader",
    "SegmentWriter",
    "StepWindow",
    "Stretch",
    "StretchRecord",
    "located",
    "path_of",
    "prepare",
    "stretches_of",
]

OPEN_FILES = 128  # of one writer; the file of the project that has been quiet longest is closed first
WRITE_BYTES = 4 << 20  # handed to the kernel at once
_NAME = re.compile(r"[0-9a-f]{16}\.seg")


class StepWindow(NamedTuple):
    """A few steps of a trajectory, as they were sent."""

    total: int  # 0 as well where the line has no list of steps
    steps: list[bytes]


def path_of(root: Path, project: UUID, segment: int) -> Path:
    """The file of a segment below the store's root."""
    day = datetime.fromtimestamp((segment >> 21) / 1000, UTC).date()
    return root / "segments" / str(project) / day.isoformat() / f"{segment:016x}.seg"


def prepare(root: Path) -> None:
    """Make the store's folder so that its name lasts: what is flushed below a folder whose own name is lost at a power cut is lost with it."""
    missing = [folder for folder in (root, *root.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True, mode=0o700)
        _flush_folder(folder.parent)
    _flush_folder(root.parent)  # also where it was made by a start that did not come to its flush


class SegmentWriter:
    """Appends stretches; one per process, safe in threads. A file belongs to one writer, one project and one day."""

    def __init__(self, root: Path, *, max_bytes: int, clock: Callable[[], float] = time.time) -> None:
        self._root = root
        self._max_bytes = max_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._open: dict[UUID, _OpenSegment] = {}
        self._process = os.getpid()

    def append(self, project: UUID, stretches: Sequence[Stretch]) -> list[list[Location]]:
        """Write and flush to the disk; the place of every line of every stretch. Raises StorageFull, Unavailable; then nothing was stored."""
        if not stretches:
            return []
        encoded = [encode(project, stretch) for stretch in stretches]
        with self._lock:
            segment, offsets = self._write(project, encoded)
        return [[Location(segment, offset, line) for line in range(len(stretch.keys))] for stretch, offset in zip(stretches, offsets, strict=True)]

    def void(self, project: UUID, keys: Sequence[UUID]) -> None:
        """Note that the lines written under these keys are not acknowledged: a rebuild prefers any other line of their ids. Raises as `append`."""
        encoded = encode(project, Stretch(int(self._clock() * 1000), (), (), (), (), void=tuple(keys)))
        with self._lock:
            self._write(project, [encoded])

    def rewrite(self, project: UUID, location: Location) -> list[tuple[UUID, Location]]:
        """First half of a deletion: append the other lines of the line's stretch anew. Commit their new places, then call `blank`."""
        reader = SegmentReader(self._root)
        header, lines = reader.stretch(project, location)
        kept = [at for at in range(len(lines)) if at != location.line and header.key(at)]
        packed = frames.pack([lines[at] for at in kept])
        if not packed:
            return []
        keys, lengths = tuple(header.key(at) or NO_KEY for at in kept), tuple(len(lines[at]) for at in kept)
        stretch = Stretch(header.received_ms, keys, lengths, tuple(packed), (sum(lengths) + len(lengths),))
        [places] = self.append(project, [stretch])
        return list(zip(keys, places, strict=True))

    def blank(self, project: UUID, location: Location) -> None:
        """Second half of a deletion: overwrite the stretch with zeros; the file stays readable around it. May be repeated."""
        path = path_of(self._root, project, location.segment)
        try:
            _blank(path, location.offset)
        except OSError as error:
            raise _failure(path, error) from error

    def close(self) -> None:
        """Close all files; the next append begins new ones."""
        with self._lock:
            for segment in self._open.values():
                segment.close()
            self._open.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _write(self, project: UUID, encoded: Sequence[Sequence[Buffer]]) -> tuple[int, list[int]]:
        whole = False
        try:
            segment = self._segment(project)
            offsets = segment.append(encoded)
            whole = True
        except OSError as error:
            raise _failure(self._root, error) from error
        finally:
            if not whole:  # whatever ended it, a signal included: what this file holds beyond its last flush is not known any more
                self._abandon(project)
        return segment.id, offsets

    def _segment(self, project: UUID) -> _OpenSegment:
        if self._process != os.getpid():  # forked: those files are the parent's
            self._open, self._process = {}, os.getpid()
        now_ms = int(self._clock() * 1000)
        segment = self._open.pop(project, None)
        if segment is not None and (segment.size >= self._max_bytes or segment.day != now_ms // 86_400_000):
            segment.close()
            segment = None
        if segment is None and len(self._open) >= OPEN_FILES:
            self._open.pop(next(iter(self._open))).close()
        self._open[project] = segment = segment or _OpenSegment.create(self._root, project, now_ms)
        return segment

    def _abandon(self, project: UUID) -> None:
        segment = self._open.pop(project, None)
        if segment is not None:
            segment.cut_back()
            segment.close()
            if segment.size == 0:  # a full disk would otherwise fill with empty files, one a refused append
                path_of(self._root, project, segment.id).unlink(missing_ok=True)


class _OpenSegment:
    """A file that only we append to."""

    def __init__(self, id: int, descriptor: int) -> None:
        self.id = id
        self.day = (id >> 21) // 86_400_000
        self.size = 0  # up to the end of the last stretch that was flushed
        self._descriptor = descriptor

    @classmethod
    def create(cls, root: Path, project: UUID, now_ms: int) -> Self:
        id = now_ms << 21 | secrets.randbits(21)
        path = path_of(root, project, id)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        segment = cls(id, descriptor)
        try:
            for folder in list(path.parents)[:4]:  # day, project, segments, root: any of them may be new
                _flush_folder(folder)
        except OSError:
            segment.close()
            raise
        return segment

    def append(self, encoded: Sequence[Sequence[Buffer]]) -> list[int]:
        offsets, at, waiting, waiting_bytes = [], self.size, list[Buffer](), 0
        for pieces in encoded:
            offsets.append(at)
            size = sum(len(piece) for piece in pieces)
            waiting += pieces
            at, waiting_bytes = at + size, waiting_bytes + size
            if waiting_bytes >= WRITE_BYTES:
                _write_all(self._descriptor, b"".join(waiting))
                waiting, waiting_bytes = [], 0
        _write_all(self._descriptor, b"".join(waiting))
        os.fdatasync(self._descriptor)
        self.size = at
        return offsets

    def cut_back(self) -> None:
        with suppress(OSError):  # a disk that refuses this too leaves a torn tail, at which every reader stops
            os.ftruncate(self._descriptor, self.size)

    def close(self) -> None:
        with suppress(OSError):  # what it holds was flushed, or was given up
            os.close(self._descriptor)


class StretchRecord(NamedTuple):
    """A stretch found by a scan; its lines are read when they are asked for."""

    path: Path
    project: UUID
    segment: int
    offset: int
    received_at: datetime
    keys: tuple[UUID | None, ...]  # None for a line without a row

    def lines(self) -> Iterator[tuple[UUID | None, Location, bytes]]:
        """(key, place, line); raises CorruptSegment."""
        with _opened(self.path, self.offset) as file:
            header, data = file.header(self.offset, self.project)
            for at, line in enumerate(file.lines(self.offset, header, data)):
                yield self.keys[at], Location(self.segment, self.offset, at), line


class SegmentReader:
    """Reads lines and steps by their place. Holds nothing between calls; safe in threads."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def line(self, project: UUID, location: Location) -> bytes:
        """The line as it was posted; raises CorruptSegment."""
        return self.lines(project, [location])[0]

    def lines(self, project: UUID, locations: Sequence[Location]) -> list[bytes]:
        """The lines in the given order; each file is opened and each frame inflated once."""
        found = [b""] * len(locations)
        wanted = sorted(range(len(locations)), key=locations.__getitem__)
        for segment, same_file in groupby(wanted, key=lambda at: locations[at].segment):
            places = list(same_file)
            with _opened(path_of(self._root, project, segment), locations[places[0]].offset) as file:
                for offset, same_stretch in groupby(places, key=lambda at: locations[at].offset):
                    header, data = file.header(offset, project)
                    at_lines = list(same_stretch)
                    for at, line in zip(at_lines, file.some_lines(offset, header, data, [locations[at].line for at in at_lines]), strict=True):
                        found[at] = line
        return found

    def stretch(self, project: UUID, location: Location) -> tuple[Header, list[bytes]]:
        """All that is stored together with a line."""
        with _opened(path_of(self._root, project, location.segment), location.offset) as file:
            header, data = file.header(location.offset, project)
            return header, file.lines(location.offset, header, data)

    def steps(self, project: UUID, location: Location, start: int, count: int) -> StepWindow:
        """`count` steps from `start` on (fewer at the end); of a long line only the frames that hold them are read."""
        start, count = max(start, 0), max(count, 0)
        with _opened(path_of(self._root, project, location.segment), location.offset) as file:
            header, data = file.header(location.offset, project)
            if len(header.frames) > 1:
                return file.long_window(location.offset, header, data, start, count)
            [line] = file.some_lines(location.offset, header, data, [location.line])
        offsets = frames.step_offsets(line)
        if offsets is None:
            return StepWindow(0, [])
        total = len(offsets) - 1
        start, end = min(start, total), min(start + count, total)
        return StepWindow(total, frames.steps_within(line[offsets[start] : offsets[end]]))

    def voids(self, path: Path) -> Iterator[UUID]:
        """The keys that a file says are not acknowledged; reads headers alone, and ends at the first that is damaged."""
        with _opened(path, 0) as file, suppress(CorruptSegment):
            offset = 0
            while offset < file.size:
                header, offset = file.next_header(offset)
                void = header.void if header is not None else b""
                yield from (UUID(bytes=void[at : at + 16]) for at in range(0, len(void), 16))
                offset += header.data_bytes if header is not None else 0

    def scan(self, path: Path) -> Iterator[StretchRecord]:
        """All stretches of a file in order. Ends at a torn tail (an append that was never acknowledged); raises CorruptSegment for damage before one."""
        if not _NAME.fullmatch(path.name):
            raise CorruptSegment(path, 0, "not the name of a segment")
        with _opened(path, 0) as file:
            offset, size = 0, file.size
            while (after := file.whole(offset, size)) is not None:
                header, end = after
                if header is not None and header.lengths:
                    keys = tuple(header.key(at) for at in range(len(header.lengths)))
                    received_at = datetime.fromtimestamp(header.received_ms / 1000, UTC)
                    yield StretchRecord(path, UUID(bytes=header.project), int(path.stem, 16), offset, received_at, keys)
                offset = end


class _File:
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
def _opened(path: Path, offset: int) -> Iterator[_File]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise CorruptSegment(path, offset, "the file is missing") from error
    except OSError as error:
        raise _unreadable(path, error) from error
    try:
        yield _File(path, descriptor)
    except OSError as error:
        raise _unreadable(path, error) from error
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _blank(path: Path, offset: int) -> None:
    with _opened(path, offset) as file:
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


def _unreadable(path: Path, error: OSError) -> Unavailable:
    return Unavailable(f"segment {path} cannot be read: {error}")


def _failure(path: Path, error: OSError) -> Unavailable:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull(f"no room for segments below {path}: {error.strerror}", retry_after_s=30.0)
    return Unavailable(f"segments below {path} cannot be written: {error}")
