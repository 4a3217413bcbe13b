"""Reads lines and steps back by their place, and all that a file holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from inspector import frames
from inspector.store.segments.files import StepWindow, opened
from inspector.store.segments.places import NAME, path_of
from inspector.store.stretches import CorruptSegment, Header, Location


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
        with opened(self.path, self.offset) as file:
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
            with opened(path_of(self._root, project, segment), locations[places[0]].offset) as file:
                for offset, same_stretch in groupby(places, key=lambda at: locations[at].offset):
                    header, data = file.header(offset, project)
                    at_lines = list(same_stretch)
                    for at, line in zip(at_lines, file.some_lines(offset, header, data, [locations[at].line for at in at_lines]), strict=True):
                        found[at] = line
        return found

    def stretch(self, project: UUID, location: Location) -> tuple[Header, list[bytes]]:
        """All that is stored together with a line."""
        with opened(path_of(self._root, project, location.segment), location.offset) as file:
            header, data = file.header(location.offset, project)
            return header, file.lines(location.offset, header, data)

    def steps(self, project: UUID, location: Location, start: int, count: int) -> StepWindow:
        """`count` steps from `start` on (fewer at the end); of a long line only the frames that hold them are read."""
        start, count = max(start, 0), max(count, 0)
        with opened(path_of(self._root, project, location.segment), location.offset) as file:
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
        with opened(path, 0) as file, suppress(CorruptSegment):
            offset = 0
            while offset < file.size:
                header, offset = file.next_header(offset)
                void = header.void if header is not None else b""
                yield from (UUID(bytes=void[at : at + 16]) for at in range(0, len(void), 16))
                offset += header.data_bytes if header is not None else 0

    def scan(self, path: Path) -> Iterator[StretchRecord]:
        """All stretches of a file in order. Ends at a torn tail (an append that was never acknowledged); raises CorruptSegment for damage before one."""
        if not NAME.fullmatch(path.name):
            raise CorruptSegment(path, 0, "not the name of a segment")
        with opened(path, 0) as file:
            offset, size = 0, file.size
            while (after := file.whole(offset, size)) is not None:
                header, end = after
                if header is not None and header.lengths:
                    keys = tuple(header.key(at) for at in range(len(header.lengths)))
                    received_at = datetime.fromtimestamp(header.received_ms / 1000, UTC)
                    yield StretchRecord(path, UUID(bytes=header.project), int(path.stem, 16), offset, received_at, keys)
                offset = end
