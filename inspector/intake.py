"""Takes posted lines in: the door, what was known before, the segment, the rows, the bell; acknowledged means durable."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

import structlog
from sqlalchemy import Engine
from sqlmodel import Session

from inspector import gates
from inspector.bodies import Framed
from inspector.errors import BadSubmission, StorageFull, Unavailable
from inspector.gates import Admitted
from inspector.keys import new_keys
from inspector.queue import Doorbell
from inspector.settings import Limits
from inspector.store import decisions, environments, groups, runs, states, trajectories
from inspector.store.environments import EnvironmentName
from inspector.store.groups import GroupName
from inspector.store.segments import SegmentWriter
from inspector.store.session import AlreadyThere, NotStorable, driver, transaction
from inspector.store.stretches import Location, located, stretches_of
from inspector.store.trajectories import NewTrajectory
from inspector.verdict import Mode

log = structlog.get_logger()
ATTEMPTS = 5  # at the rows of one body, each time without those ids that came in meanwhile


class Status(StrEnum):
    """What became of a posted line."""

    CREATED = "created"
    DUPLICATE = "duplicate"  # the same id with the same bytes: it is there already
    CONFLICT = "conflict"  # the same id with other bytes: what came first stays
    REJECTED = "rejected"


class Receipt(NamedTuple):
    """The answer to one line."""

    status: Status
    id: str | None = None
    key: UUID | None = None
    mode: Mode | None = None  # of its run
    reason: str | None = None
    path: str | None = None


class Project(NamedTuple):
    """Whose line it is."""

    id: int
    uuid: UUID


class Posting(NamedTuple):
    """Lines that go in together. Frames that came with them are stored as they came; without them the lines are framed here."""

    lines: Sequence[bytes]
    refused: Mapping[int, str]  # lines that were not kept, by their position, with the reason
    frames: Sequence[Framed] | None


class Intake:
    """What one process needs to take lines in."""

    def __init__(self, engine: Engine, writer: SegmentWriter, doorbell: Doorbell, selection: int, limits: Limits) -> None:
        self.engine = engine
        self.writer = writer
        self.doorbell = doorbell
        self.selection = selection  # of checks, stored with each new trajectory
        self.limits = limits

    def accept(self, project: Project, posting: Posting) -> list[Receipt]:
        """One receipt a line, in their order. Returns only when what is `created` is durable, bytes and rows.

        Raises Unavailable or StorageFull when nothing of the posting was acknowledged; the same posting may be sent again.
        """
        receipts: list[Receipt | None] = [None] * len(posting.lines)
        fresh, repeated = self._door(posting, receipts)
        with transaction(self.engine) as session:
            driver(session).execute("SET LOCAL synchronous_commit = off")  # names, not promises: the rows' own commit makes them durable
            self._recognise(session, project, fresh, receipts)
            references = refer(session, project.id, fresh.values())
            self._announce(session, project, references)
        if fresh:
            self._store(project, posting, fresh, references, receipts)
            self.doorbell.ring()
        self._answer_repeated(project, repeated, receipts)
        return [self._answered(receipt) for receipt in receipts]

    @staticmethod
    def _announce(session: Session, project: Project, references: References) -> None:
        """A project that posts an environment version or a task for the first time learns of its state, as those did that posted it before."""
        joined, begun = references.joined, references.begun
        standing = states.new_to(session, project.id, joined, begun) if joined or begun else []
        if standing:
            driver(session).execute("SET LOCAL synchronous_commit = on")  # numbers of the feed must not be given twice
            decisions.announce(session, project.id, standing, "first posted it")

    def _door(self, posting: Posting, receipts: list[Receipt | None]) -> tuple[dict[int, Admitted], dict[int, tuple[Admitted, int]]]:
        """By position: the lines that pass the first gate, and those whose id stood in this posting before, with where it did."""
        fresh: dict[int, Admitted] = {}
        repeated: dict[int, tuple[Admitted, int]] = {}
        first: dict[str, int] = {}
        for at, line in enumerate(posting.lines):
            if at in posting.refused:
                receipts[at] = Receipt(Status.REJECTED, reason=posting.refused[at], path="$")
                continue
            try:
                admitted = gates.admit(line, self.limits)
            except BadSubmission as error:
                receipts[at] = Receipt(Status.REJECTED, reason=error.reason, path=error.path)
                continue
            earlier = first.setdefault(admitted.envelope.id, at)
            if earlier == at:
                fresh[at] = admitted
            else:
                repeated[at] = (admitted, earlier)
        return fresh, repeated

    def _answer_repeated(self, project: Project, repeated: Mapping[int, tuple[Admitted, int]], receipts: list[Receipt | None]) -> None:
        """As if each had been posted after the others: what counts is what was stored, not what stood before it in the body."""
        if not repeated:
            return
        with transaction(self.engine) as session:
            known = trajectories.known(session, project.id, [admitted.envelope.id for admitted, _ in repeated.values()])
        for at, (admitted, earlier) in repeated.items():
            stored = known.get(admitted.envelope.id)
            receipts[at] = _again(admitted, stored[1], stored[0]) if stored else receipts[earlier]

    def _recognise(self, session: Session, project: Project, fresh: dict[int, Admitted], receipts: list[Receipt | None]) -> None:
        """Take out what the project posted before."""
        known = trajectories.known(session, project.id, [admitted.envelope.id for admitted in fresh.values()])
        for at, admitted in list(fresh.items()):
            if admitted.envelope.id in known:
                key, sha256 = known[admitted.envelope.id]
                receipts[at] = _again(admitted, sha256, key)
                del fresh[at]

    def _store(self, project: Project, posting: Posting, fresh: dict[int, Admitted], references: References, receipts: list[Receipt | None]) -> None:
        keys: list[UUID | None] = [None] * len(posting.lines)
        for at, key in zip(fresh, new_keys(len(fresh)), strict=True):
            keys[at] = key
        stretches = stretches_of(posting, keys, int(time.time() * 1000))
        places = located(stretches, self.writer.append(project.uuid, stretches))  # fdatasync has returned
        rows = {at: new_row(project.id, admitted, _given(keys[at]), places[at], references, self.selection) for at, admitted in fresh.items()}
        written = [row.key for row in rows.values()]
        try:
            rows = self._add(project, rows, fresh, receipts)
        except (Unavailable, StorageFull):
            self._void(project, written)
            raise
        if len(rows) < len(written):
            self._void(project, [key for key in written if key not in {row.key for row in rows.values()}])
        for at, row in rows.items():
            receipts[at] = Receipt(Status.CREATED, row.id, row.key, references.mode(fresh[at]))

    def _add(self, project: Project, rows: dict[int, NewTrajectory], fresh: dict[int, Admitted], receipts: list[Receipt | None]) -> dict[int, NewTrajectory]:
        """Those rows that are there now and were not before."""
        for _ in range(ATTEMPTS):
            try:
                with transaction(self.engine) as session:
                    trajectories.add(session, list(rows.values()))
                return rows
            except AlreadyThere:  # another post of the same id was faster; its rows are there now
                with transaction(self.engine) as session:
                    self._recognise(session, project, fresh, receipts)
                rows = {at: rows[at] for at in fresh}
            except NotStorable:
                return self._one_by_one(project, rows, fresh, receipts)
        raise Unavailable("other posts of the same ids keep coming in between")

    def _void(self, project: Project, keys: Sequence[UUID]) -> None:
        """Note in the segments what is not acknowledged, for a rebuild; where that fails, a rebuild takes the first line of an id."""
        try:
            self.writer.void(project.uuid, keys)
        except (Unavailable, StorageFull) as error:
            log.warning("not voided", lines=len(keys), reason=str(error))

    def _one_by_one(
        self, project: Project, rows: dict[int, NewTrajectory], fresh: dict[int, Admitted], receipts: list[Receipt | None]
    ) -> dict[int, NewTrajectory]:
        """Only the row that Postgres refuses is refused."""
        stored: dict[int, NewTrajectory] = {}
        for at, row in rows.items():
            try:
                with transaction(self.engine) as session:
                    trajectories.add(session, [row])
                stored[at] = row
            except NotStorable as error:
                receipts[at] = Receipt(Status.REJECTED, row.id, reason=f"cannot be stored: {error.detail}", path="$")
            except AlreadyThere:
                with transaction(self.engine) as session:
                    self._recognise(session, project, {at: fresh[at]}, receipts)
        return stored

    @staticmethod
    def _answered(receipt: Receipt | None) -> Receipt:
        assert receipt is not None, "every line is answered"
        return receipt


class References(NamedTuple):
    """Ids of the rows that a posting speaks of."""

    environments: Mapping[EnvironmentName, int]
    tasks: Mapping[tuple[int, str], int]
    runs: Mapping[str, tuple[int, Mode]]
    groups: Mapping[tuple[int | None, str], int]
    joined: Sequence[int] = ()  # environment versions that the project had not posted before
    begun: Sequence[int] = ()  # tasks of which the same is true

    def environment(self, admitted: Admitted) -> int:
        """Of its environment version."""
        ref = admitted.envelope.environment
        return self.environments[EnvironmentName(ref.id, ref.version)]

    def task(self, admitted: Admitted) -> int:
        """Of its task."""
        return self.tasks[self.environment(admitted), admitted.envelope.task.id]

    def run(self, admitted: Admitted) -> int | None:
        """Of its run, if it names one."""
        run = admitted.envelope.run
        return self.runs[run.id][0] if run else None

    def mode(self, admitted: Admitted) -> Mode:
        """Of its run; what belongs to no run is observed."""
        run = admitted.envelope.run
        return self.runs[run.id][1] if run else Mode.OBSERVE

    def group(self, admitted: Admitted) -> int | None:
        """Of its group, if it names one."""
        group = admitted.envelope.group
        return self.groups[self.run(admitted), group.id] if group else None


def new_row(project: int, admitted: Admitted, key: UUID, place: Location, references: References, selection: int) -> NewTrajectory:
    """The row of an admitted line that lies in a segment."""
    envelope = admitted.envelope
    run = envelope.run
    return NewTrajectory(
        key=key,
        project=project,
        environment_version=references.environment(admitted),
        task=references.task(admitted),
        run=references.run(admitted),
        group_id=references.group(admitted),
        step=run.step if run else None,
        policy_version=run.policy_version if run else None,
        reward=envelope.reward,
        segment=place.segment,
        place=place.offset,
        length=len(admitted.line),
        selection=selection,
        line=place.line,
        sha256=admitted.sha256,
        id=envelope.id,
    )


def refer(session: Session, project: int, fresh: Iterable[Admitted]) -> References:
    """Ids of everything that these lines name, made where they were not known."""
    envelopes = [admitted.envelope for admitted in fresh]
    found = environments.make(session, {EnvironmentName(e.environment.id, e.environment.version) for e in envelopes})
    joined = environments.join(session, project, found.values())
    tasks = environments.ensure_tasks(session, {(found[EnvironmentName(e.environment.id, e.environment.version)], e.task.id) for e in envelopes})
    begun = environments.join_tasks(session, project, tasks.values())
    run_ids = runs.ensure(session, project, {(e.run.id, e.run.trainer) for e in envelopes if e.run})
    names = [GroupName(run_ids[e.run.id][0] if e.run else None, e.group.id, e.group.size) for e in envelopes if e.group]
    return References(found, tasks, run_ids, groups.touch(session, project, names), joined, begun)


def _again(admitted: Admitted, sha256: bytes, key: UUID | None) -> Receipt:
    """The answer to an id that is known."""
    id_ = admitted.envelope.id
    if admitted.sha256 == sha256:
        return Receipt(Status.DUPLICATE, id_, key)
    return Receipt(Status.CONFLICT, id_, key, reason=f"{id_!r} was posted before with other bytes; the first stays", path="$.id")


def _given(key: UUID | None) -> UUID:
    assert key is not None, "every fresh line was given a key"
    return key
