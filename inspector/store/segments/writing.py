"""Writes stretches of lines to segment files so that they last."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self
from uuid import UUID

from inspector import frames
from inspector.frames import Buffer
from inspector.store.segments.files import blank
from inspector.store.segments.places import WRITE_BYTES, failure, flush_folder, path_of
from inspector.store.segments.reading import SegmentReader
from inspector.store.stretches import NO_KEY, Location, Stretch, encode

OPEN_FILES = 128  # of one writer; the file of the project that has been quiet longest is closed first


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
            blank(path, location.offset)
        except OSError as error:
            raise failure(path, error) from error

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
            raise failure(self._root, error) from error
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
                flush_folder(folder)
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


def _write_all(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
