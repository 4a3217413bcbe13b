"""Learns what is ordinary in a project: reads what came since, keeps the windows, fits a model on them.

Nothing of it is on the road of a trajectory: an audit reads the model that holds, and writes nothing for the next one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from uuid import UUID

import numpy as np
import structlog
from sqlalchemy import Engine

from inspector import gates
from inspector.amend import amended
from inspector.anomaly import learning, model, windows
from inspector.anomaly.arrays import BadArrays
from inspector.anomaly.features import COUNT, matrix
from inspector.anomaly.oddness import Fit
from inspector.anomaly.windows import Kept, Window
from inspector.store import baselines, patches
from inspector.store.baselines import Due, Readable, Windowed
from inspector.store.segments import SegmentReader
from inspector.store.session import transaction
from inspector.store.stretches import CorruptSegment
from inspector.trajectory import Trajectory

log = structlog.get_logger()
WINDOW = 4000  # episodes of an environment version that are kept
ENVIRONMENTS = 200  # that were posted to last
READ_BYTES = 256 << 20  # of lines, in one pass; the rest comes with the next
BLOCK = 100  # lines that are held at once
SHARE = 0.1  # of what a model was learnt from: so many new ones, and it is fitted anew


class Learnt(NamedTuple):
    """A model that was fitted."""

    project: int
    version: int
    episodes: int
    digest: str


def learn_due(engine: Engine, reader: SegmentReader, fit: Fit) -> list[Learnt]:
    """Fit the models of all projects of which enough is new; none where another process is at it."""
    with baselines.learning_alone(engine) as alone:
        if not alone:
            return []
        with transaction(engine) as session:
            due = baselines.due(session, learning.NEEDED, SHARE)
        return [learnt for project in due if (learnt := learn(engine, reader, project, fit)) is not None]


def learn(engine: Engine, reader: SegmentReader, project: Due, fit: Fit) -> Learnt | None:
    """Bring the windows of a project up to date and fit a model; None where too little is known yet."""
    with transaction(engine) as session:
        kept = baselines.windows(session, project.project, ENVIRONMENTS)
    known, left = {}, READ_BYTES
    for one in kept:
        known[one.environment, one.version], read = _up_to_date(engine, reader, project, one, left)
        left -= read
    keys = [key for window in known.values() for key in window]
    with transaction(engine) as session:
        confirmed = baselines.confirmed(session, keys)
    fitted = learning.learn([_window(place, window, confirmed) for place, window in known.items()], fit)
    return None if fitted is None else _kept(engine, project.project, fitted, max(keys))


def _kept(engine: Engine, project: int, fitted: model.Model, until: UUID) -> Learnt:
    body = fitted.packed()
    digest = model.digest(body)
    with transaction(engine) as session:
        version = baselines.add_model(session, project, digest, fitted.episodes, until, body)
    log.info("baseline fitted", project=project, version=version, episodes=fitted.episodes, environments=len(fitted.environments), digest=digest.hex()[:16])
    return Learnt(project, version, fitted.episodes, digest.hex())


def _window(place: model.Place, window: Window, confirmed: set[UUID]) -> learning.Window:
    keys = sorted(window)
    rows = np.array([window[key].features for key in keys]).reshape(-1, COUNT)
    return learning.Window(place, rows, windows.order(keys), np.array([key in confirmed for key in keys], bool))


# --- windows ---------------------------------------------------------------------------------------------------------


def _up_to_date(engine: Engine, reader: SegmentReader, project: Due, one: Windowed, budget: int) -> tuple[Window, int]:
    """The last episodes of an environment version, and how many bytes of lines were read for it."""
    before = _unpacked(one)
    with transaction(engine) as session:
        newest = baselines.newest(session, project.project, one.id, WINDOW)
        added = baselines.added(session, [readable.key for readable in newest])
    stands = {r.key: before[r.key] for r in newest if r.key in before and before[r.key].added == added.get(r.key, 0)}
    missing = _within([r for r in newest if r.key not in stands], budget)
    window = stands | dict(_read(engine, reader, project.uuid, missing))
    if window.keys() != before.keys() or missing:
        with transaction(engine) as session:
            baselines.keep_window(session, project.project, one.id, windows.pack(window))
    return window, sum(readable.length for readable in missing)


def _unpacked(one: Windowed) -> dict[UUID, Kept]:
    try:
        return windows.unpack(one.body)
    except BadArrays as error:
        log.error("damaged window", environment=one.environment, version=one.version, reason=str(error))
        return {}


def _within(wanted: Sequence[Readable], budget: int) -> list[Readable]:
    """The first of these that fit, and none at all where nothing does."""
    ends = np.cumsum([readable.length for readable in wanted])
    return list(wanted[: int(np.searchsorted(ends, budget, side="right"))])


def _read(engine: Engine, reader: SegmentReader, project: UUID, wanted: Sequence[Readable]) -> Iterator[tuple[UUID, Kept]]:
    """The features of these, but for what cannot be read any more."""
    for at in range(0, len(wanted), BLOCK):
        block = wanted[at : at + BLOCK]
        with transaction(engine) as session:
            added = patches.of(session, [readable.key for readable in block])
        read: list[tuple[UUID, Trajectory]] = []
        for key, line in _lines(reader, project, block):
            trajectory = gates.read(line)
            read.append((key, amended(trajectory, added[key]) if key in added else trajectory))
        for (key, _), row in zip(read, matrix([trajectory for _, trajectory in read]), strict=True):
            yield key, Kept(row, len(added.get(key, ())))


def _lines(reader: SegmentReader, project: UUID, block: Sequence[Readable]) -> Iterator[tuple[UUID, bytes]]:
    try:
        yield from zip([readable.key for readable in block], reader.lines(project, [readable.location for readable in block]), strict=True)
    except CorruptSegment as error:
        if len(block) == 1:
            log.warning("not learnt from", trajectory=str(block[0].key), reason=str(error))
            return
        for readable in block:  # find out which
            yield from _lines(reader, project, [readable])
