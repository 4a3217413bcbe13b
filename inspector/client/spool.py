"""Keeps bodies on disk, in order, until the service has taken them; a later process finds what an earlier one left.

A process writes only into its own folder, which it holds by a lock. A folder whose lock is free belonged to a process that
is gone: whoever gets the lock reads it as its own, oldest first. A record is a header (magic, lengths, crc32) and the body.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import struct
import threading
import zlib
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from inspector.client.batches import Batch, next_number
from inspector.client.folders import Folder, left_behind, sync_folder

HEADER = struct.Struct("<4sIIIQ")  # magic, crc32 of the rest of the header and of the body, body bytes, lines, inflated bytes
MAGIC = b"iSP1"
SEGMENT_BYTES = 8 << 20


class Place(NamedTuple):
    """Where a record lies."""

    number: int
    path: Path
    offset: int
    size: int  # of the body
    lines: int
    raw_bytes: int


class Spool:
    """Append from one thread, read and acknowledge from another; nothing is readable before its fsync returned."""

    def __init__(self, root: Path, scope: str, *, scopes: Sequence[str] = (), max_bytes: int) -> None:
        self._root, self._scope, self._scopes, self._max_bytes = root, scope, (scope, *scopes), max_bytes
        self._lock = threading.Lock()  # of the fields below; never held during I/O
        self._waiting: deque[Place] = deque()
        self._left_in: Counter[Path] = Counter()  # records not yet taken, per file
        self._bytes = 0
        self._own: Folder | None = None
        self._adopted: list[Folder] = []
        self._file: int | None = None
        self._path = Path()
        self._at = 0
        self._sequence = 0
        self.corrupt = 0

    @property
    def bytes(self) -> int:
        """Bytes that wait."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def first(self) -> int | None:
        """The number of the oldest record."""
        with self._lock:
            return self._waiting[0].number if self._waiting else None

    @property
    def drained(self) -> bool:
        """Whether nothing waits here, and there is something to delete."""
        return not self._waiting and (self._file is not None or self._own is not None or bool(self._adopted))

    def fitting(self, batches: Sequence[Batch]) -> int:
        """How many of these the cap allows, from the first on."""
        sizes = itertools.accumulate((HEADER.size + len(batch.body) for batch in batches), initial=self._bytes)
        return sum(size <= self._max_bytes for size in sizes) - 1 if self._bytes <= self._max_bytes else 0

    def append(self, batches: Sequence[Batch]) -> None:
        """Write and fsync; all of them or, with an OSError, none. The file of a failed write is given up."""
        file = self._segment()
        start = self._at
        try:
            places = [self._write(file, batch) for batch in batches]
            os.fsync(file)
        except OSError:
            self._abandon(start)
            raise
        with self._lock:
            self._enter(places)

    def head(self) -> Batch | None:
        """The oldest record. One that cannot be read is counted as corrupt and left out."""
        while True:
            with self._lock:
                place = self._waiting[0] if self._waiting else None
            if place is None:
                return None
            body = _read(place)
            if body is not None:
                return Batch(place.number, body, place.lines, place.raw_bytes)
            self.corrupt += place.lines
            self.done(place.number)

    def done(self, number: int) -> None:
        """The service took the record of that number (or will never take it); a file without others is deleted."""
        with self._lock:
            if not self._waiting or self._waiting[0].number != number:
                return
            place = self._waiting.popleft()
            self._bytes -= HEADER.size + place.size
            self._left_in[place.path] -= 1
            finished = self._left_in[place.path] == 0 and place.path != self._path
        if finished:
            place.path.unlink(missing_ok=True)

    def adopt(self) -> int:
        """Take over the folders of processes that are gone; the number of trajectories found there."""
        found = 0
        for folder in left_behind(self._root, self._scopes):
            places = [place for path in sorted(folder.path.glob("*.spool")) for place in scan(path)]
            with self._lock:
                self._adopted.append(folder)
                self._enter(places)
            found += sum(place.lines for place in places)
        return found

    def tidy(self) -> None:
        """Delete what is empty; from the thread that appends."""
        if not self._waiting:
            self._finish_segment()
        self._leave_empty_folders()

    def forget(self) -> None:
        """After a fork: everything here is the parent's."""
        if self._file is not None:
            os.close(self._file)
        for folder in (*self._adopted, *((self._own,) if self._own else ())):
            folder.forget()

    def close(self) -> None:
        """Let go of the folders; what waits in them is for the next process."""
        self._finish_segment()
        self._leave_empty_folders()
        for folder in (*self._adopted, *((self._own,) if self._own else ())):
            folder.release()
        self._adopted, self._own = [], None

    def _enter(self, places: Sequence[Place]) -> None:
        self._waiting.extend(places)
        self._left_in.update(place.path for place in places)
        self._bytes += sum(HEADER.size + place.size for place in places)

    def _segment(self) -> int:
        if self._file is not None and self._at >= SEGMENT_BYTES:
            self._finish_segment()
        if self._file is None:
            self._own = self._own or Folder.create(self._root, self._scope)
            self._sequence += 1
            path = self._own.path / f"{self._sequence:010d}.spool"
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            self._path, self._at = path, 0
            sync_folder(self._own.path)
        return self._file

    def _write(self, file: int, batch: Batch) -> Place:
        rest = struct.pack("<IIQ", len(batch.body), batch.lines, batch.raw_bytes)
        header = HEADER.pack(MAGIC, zlib.crc32(batch.body, zlib.crc32(rest)), len(batch.body), batch.lines, batch.raw_bytes)
        record = memoryview(header + batch.body)
        while record:
            record = record[os.write(file, record) :]
        offset, self._at = self._at, self._at + HEADER.size + len(batch.body)
        return Place(batch.number, self._path, offset, len(batch.body), batch.lines, batch.raw_bytes)

    def _abandon(self, start: int) -> None:
        file, path = self._file, self._path
        self._file, self._path, self._at = None, Path(), 0
        if file is None:
            return
        with contextlib.suppress(OSError):  # a later process may then send what was counted as lost
            os.ftruncate(file, start)
        os.close(file)
        self._delete_if_empty(path)

    def _finish_segment(self) -> None:
        file, path = self._file, self._path
        if file is None:
            return
        with self._lock:
            self._file, self._path = None, Path()
        os.close(file)
        self._delete_if_empty(path)

    def _delete_if_empty(self, path: Path) -> None:
        with self._lock:
            empty = self._left_in[path] == 0
        if empty:
            path.unlink(missing_ok=True)

    def _leave_empty_folders(self) -> None:
        for folder in [folder for folder in self._adopted if not any(folder.path.glob("*.spool"))]:
            folder.remove()
            self._adopted.remove(folder)
        if self._own and self._file is None and not any(self._own.path.glob("*.spool")):
            self._own.remove()
            self._own = None


def scan(path: Path) -> Iterator[Place]:
    """The records of a file by their headers; ends at a torn tail, which no flush had promised."""
    size = path.stat().st_size
    offset = 0
    with path.open("rb") as file:
        while offset + HEADER.size <= size:
            file.seek(offset)
            magic, _, length, lines, raw_bytes = HEADER.unpack(file.read(HEADER.size))
            if magic != MAGIC or offset + HEADER.size + length > size:
                return
            yield Place(next_number(), path, offset, length, lines, raw_bytes)
            offset += HEADER.size + length


def _read(place: Place) -> bytes | None:
    try:
        with place.path.open("rb") as file:
            file.seek(place.offset)
            record = file.read(HEADER.size + place.size)
    except OSError:
        return None
    if len(record) != HEADER.size + place.size:
        return None
    _, crc, *_ = HEADER.unpack_from(record)
    rest_and_body = memoryview(record)[8:]
    return bytes(rest_and_body[16:]) if zlib.crc32(rest_and_body) == crc else None
