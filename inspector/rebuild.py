"""Restores the rows of trajectories from the segments: what was acknowledged outlives the database.

Keys, declarations, reviews, decisions and fields that came later than their line are not in the segments and do not come
back. The restored project has another epoch, so that every follower starts from the snapshot, and every restored trajectory
is audited again. Of several lines of one id, as a race or a lost database leaves them, the first comes back that was not
voided: that one was acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import structlog
from sqlalchemy import Engine

from inspector import gates
from inspector.errors import BadSubmission
from inspector.gates import Admitted
from inspector.intake import ATTEMPTS, new_row, refer
from inspector.settings import Limits
from inspector.store import decisions, projects, trajectories
from inspector.store.segments import SegmentReader, StretchRecord
from inspector.store.session import AlreadyThere, transaction
from inspector.store.stretches import CorruptSegment, Location

BLOCK = 500
BLOCK_BYTES = 64 << 20  # of lines that are held at once
log = structlog.get_logger()


class Restored(NamedTuple):
    """What a rebuild did."""

    rows: int
    present: int  # had their row already
    files: int
    damaged: tuple[str, ...]  # what could not be read, and where


class _Line(NamedTuple):
    key: UUID
    place: Location
    admitted: Admitted


class _Place(NamedTuple):
    key: UUID
    place: Location


def rebuild(engine: Engine, root: Path, selection: int, *, progress: Callable[[Path], None] = lambda path: None) -> Restored:
    """Go through every segment of the store at `root` (as its writer has it), oldest first. May be run again, and beside a running service."""
    reader, paths = SegmentReader(root), files_below(root)
    void = {key for path in paths for key in _voids(reader, path)}
    rows = present = 0
    damaged: list[str] = []
    last: dict[UUID, list[_Place]] = {}  # by project: what was voided, and comes back only where nothing else has its id
    for path in paths:
        progress(path)
        for project, block in _blocks(_records(reader, path, damaged), damaged):
            last.setdefault(project, []).extend(_Place(line.key, line.place) for line in block if line.key in void)
            taken = [line for line in block if line.key not in void]
            added = _persistently(engine, project, taken, selection)
            rows += added
            present += len(taken) - added
    for project, places in last.items():
        for at in range(0, len(places), BLOCK):
            rows += _persistently(engine, project, list(_again(reader, project, places[at : at + BLOCK])), selection)
    return Restored(rows, present, len(paths), tuple(damaged))


def _voids(reader: SegmentReader, path: Path) -> list[UUID]:
    try:
        return list(reader.voids(path))
    except CorruptSegment:  # it is reported when its lines are read
        return []


def _again(reader: SegmentReader, project: UUID, places: Sequence[_Place]) -> Iterator[_Line]:
    for key, place in places:
        yield _Line(key, place, gates.admit(reader.line(project, place), _NO_LIMITS))


def files_below(root: Path) -> list[Path]:
    """Every segment file of a store, oldest first."""
    return sorted((root / "segments").glob("*/*/*.seg"), key=lambda path: path.name)


def _records(reader: SegmentReader, path: Path, damaged: list[str]) -> Iterator[StretchRecord]:
    try:
        yield from reader.scan(path)
    except CorruptSegment as error:
        log.error("damaged segment", reason=str(error))
        damaged.append(str(error))


def _blocks(records: Iterator[StretchRecord], damaged: list[str]) -> Iterator[tuple[UUID, list[_Line]]]:
    """Lines with a key, in blocks of one project; a file holds one project."""
    block: list[_Line] = []
    project: UUID | None = None
    for record in records:
        project = record.project
        block += _lines(record, damaged)
        if len(block) >= BLOCK or sum(len(line.admitted.line) for line in block) >= BLOCK_BYTES:
            yield project, block
            block = []
    if block and project is not None:
        yield project, block


def _lines(record: StretchRecord, damaged: list[str]) -> Iterator[_Line]:
    try:
        for key, place, line in record.lines():
            if key is not None:
                try:
                    yield _Line(key, place, gates.admit(line, _NO_LIMITS))
                except BadSubmission as error:  # what stands beside it is not lost with it
                    damaged.append(f"{record.path} at byte {record.offset}, line {place.line}: {error}")
    except CorruptSegment as error:
        damaged.append(str(error))


def _persistently(engine: Engine, project_uuid: UUID, block: list[_Line], selection: int) -> int:
    for _ in range(ATTEMPTS - 1):
        with suppress(AlreadyThere):  # the service that runs beside wrote one of the rows meanwhile
            return _restore(engine, project_uuid, block, selection)
    return _restore(engine, project_uuid, block, selection)


def _restore(engine: Engine, project_uuid: UUID, block: list[_Line], selection: int) -> int:
    with transaction(engine) as session:
        project = projects.restore(session, project_uuid)
        known = trajectories.known(session, project, [line.admitted.envelope.id for line in block])
        missing: dict[str, _Line] = {}
        for line in block:
            if line.admitted.envelope.id not in known:
                missing.setdefault(line.admitted.envelope.id, line)
        references = refer(session, project, [line.admitted for line in missing.values()])
        rows = [new_row(project, line.admitted, line.key, line.place, references, selection) for line in missing.values()]
        trajectories.add(session, rows)
        if rows:  # also of a database that is there but behind: its numbers will be given a second time
            decisions.begin_epoch(session, project)
    return len(rows)


_NO_LIMITS = Limits(line_bytes=1 << 40, envelope_bytes=1 << 40, envelope_depth=900)  # what was let in under other limits stays in
