"""Reads a claimed block: the lines from their segments, and what their checks may ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from sqlmodel import Session

from inspector import gates
from inspector.amend import amended
from inspector.check import Check, History, Payments, Probed, Replayed, Twin
from inspector.engine import Assessment, Needs
from inspector.final_answers import digest, final_answer
from inspector.final_states import state_digest
from inspector.payments import LISTED, REFUSED, compare
from inspector.signatures.transcript import content_hash
from inspector.store import answers, environments, groups, patches, probes, replays, trajectories
from inspector.store.segments import SegmentReader
from inspector.store.stretches import CorruptSegment
from inspector.store.trajectories import Subject
from inspector.store.work import Claim
from inspector.task import Declaration
from inspector.trajectory import Header, Trajectory

_SPREAD = 0x9E3779B97F4A7C15  # odd, and far from any small multiple of 2^64: neighbouring tasks land far apart
_NOTHING: Mapping[str, bytes] = {}


class Opened(NamedTuple):
    """A claimed trajectory with its line."""

    claim: Claim
    subject: Subject
    line: bytes
    declaration: Declaration
    added: Mapping[str, bytes]  # fields that came later than the line

    def read(self) -> Trajectory:
        """Decode it for all checks at once."""
        trajectory = gates.read(self.line, str(self.subject.key))
        return amended(trajectory, self.added) if self.added else trajectory


class Audited(NamedTuple):
    """A claimed trajectory with what the checks said of it."""

    claim: Claim
    subject: Subject
    header: Header
    declaration: Declaration
    content: int | None
    assessment: Assessment
    added: int | None = None  # fields that had come later than the line when it was read; None where it could not be read
    state: int | None = None  # the number of what the episode left, where that is attached
    answer: int | None = None  # the number of its final answer, where a check asks for it


def open_block(session: Session, reader: SegmentReader, claims: Sequence[Claim]) -> tuple[list[Opened], list[tuple[Claim, Subject, str]]]:
    """The claimed trajectories that still exist, and those whose stored bytes are damaged, with what is wrong."""
    found = trajectories.subjects(session, [claim.key for claim in claims if claim.key])
    held = [(claim, found[claim.key]) for claim in claims if claim.key in found]
    declared = environments.declarations(session, {subject.task for _, subject in held})
    added = patches.of(session, [subject.key for _, subject in held])
    opened, damaged = [], []
    for project in {subject.project_uuid for _, subject in held}:
        mine = [(claim, subject) for claim, subject in held if subject.project_uuid == project]
        for (claim, subject), line in zip(mine, _lines(reader, project, [subject for _, subject in mine]), strict=True):
            if isinstance(line, bytes):
                opened.append(Opened(claim, subject, line, declared[subject.task], added.get(subject.key, _NOTHING)))
            else:
                damaged.append((claim, subject, line))
    return opened, damaged


def _lines(reader: SegmentReader, project: UUID, subjects: Sequence[Subject]) -> Iterable[bytes | str]:
    try:
        return reader.lines(project, [subject.location for subject in subjects])
    except CorruptSegment:  # find out which
        return [_line(reader, project, subject) for subject in subjects]


def _line(reader: SegmentReader, project: UUID, subject: Subject) -> bytes | str:
    try:
        return reader.line(project, subject.location)
    except CorruptSegment as error:
        return f"the stored bytes are damaged: {error}"


def read_all(opened: Iterable[Opened]) -> tuple[list[Trajectory], list[int]]:
    """Each with the number of its content, which is made while what was just read is still in the processor's cache."""
    read: list[Trajectory] = []
    contents: list[int] = []
    for one in opened:
        trajectory = one.read()
        read.append(trajectory)
        contents.append(content_of(trajectory, one.subject.task))
    return read, contents


def content_of(trajectory: Trajectory, task: int) -> int:
    """A 64-bit number that is equal for equal steps of one task; whatever it finds is compared by task again."""
    return _number(content_hash(trajectory), task)


def state_of(header: Header, task: int) -> int | None:
    """The same of what the episode left; None where that is not attached, or its reward may speak of a limit."""
    digest = state_digest(header)
    return None if digest is None else _number(digest, task)


def answers_of(checks: Iterable[Check], opened: Sequence[Opened], read: Sequence[Trajectory]) -> list[int | None]:
    """The number of each final answer in its environment version; None where there is none, or nobody asks."""
    if not any(Payments in check.needs for check in checks):
        return [None] * len(read)
    given = [final_answer(trajectory) for trajectory in read]
    return [_number(digest(one.text), o.subject.environment_version) if one else None for one, o in zip(given, opened, strict=True)]


def _number(digest: bytes, of: int) -> int:
    return (int.from_bytes(digest[:8], "big") + of * _SPREAD) % (1 << 64) - (1 << 63)


def needs(session: Session, project: int, checks: Iterable[Check], opened: Sequence[Opened], read: Sequence[Trajectory], contents: Sequence[int]) -> Needs:
    """What these checks may ask for of one project's block."""
    asked = {need for check in checks for need in check.needs}
    history = _history(session, project, opened, read, contents) if History in asked else History()
    return Needs([o.declaration for o in opened], history, probed=_probed(session, opened) if Probed in asked else {})


def payments(session: Session, project: int, opened: Sequence[Opened], numbers: Sequence[int | None]) -> dict[str, Payments]:
    """What was paid for the final answers of a block, its own included, by key."""
    given = [(o, number) for o, number in zip(opened, numbers, strict=True) if number is not None]
    if not given:
        return {}
    scored = [(o, number) for o, number in given if o.subject.reward is not None]
    answers.note(session, project, [answers.Given(number, o.subject.task, o.declaration.pays(o.subject.reward)) for o, number in scored])
    known = answers.offers(session, project, {number for _, number in given}, listed=LISTED)
    telling = _Telling(session, project, known.values())
    of_answers = {number: telling.payments(offers) for number, offers in known.items()}
    return {str(o.subject.key): of_answers.get(number, Payments(answered=True)) for o, number in given}


class _Telling:
    """Answers that tell tasks apart, found by the tasks of which they speak: a block has hundreds of answers, each paid by a few."""

    def __init__(self, session: Session, project: int, known: Iterable[answers.Offers]) -> None:
        compared = {task for offers in known if _worth_comparing(offers) for task in offers.paid}
        self._rows = answers.telling(session, project, compared) if compared else []
        self._of_task: dict[int, set[int]] = {}
        for at, told in enumerate(self._rows):
            for task in (*told[0], *told[1]):
                self._of_task.setdefault(task, set()).add(at)

    def payments(self, offers: answers.Offers) -> Payments:
        """What is known of an answer, as checks are told it."""
        speaking = set[int]().union(*(self._of_task.get(task, ()) for task in offers.paid)) if _worth_comparing(offers) else ()
        told = compare(offers.paid, [self._rows[at] for at in speaking])
        named = (sorted((offers.paid[one], offers.paid[other])) for one, other in told.apart)
        return Payments(True, list(offers.paid.values()), frozenset((a, b) for a, b in named), offers.offered, offers.refused, told.own, told.shared)


def _worth_comparing(offers: answers.Offers) -> bool:
    return len(offers.paid) > 1 and offers.refused <= REFUSED * offers.offered


def _probed(session: Session, opened: Sequence[Opened]) -> dict[str, Probed]:
    said = probes.said(session, {o.subject.task for o in opened})
    known = {task: Probed(frozenset(one.outcomes), f"/v1/probes/{one.probe}") for task, one in said.items()}
    return {str(o.subject.key): known[o.subject.task] for o in opened if o.subject.task in known}


def _history(session: Session, project: int, opened: Sequence[Opened], read: Sequence[Trajectory], contents: Sequence[int]) -> History:
    twins: dict[str, Sequence[Twin]] = {t.key: found for t, found in zip(read, twins_of(session, project, opened, contents), strict=True) if found}
    tasks = groups.tasks_of(session, {o.subject.group_id for o in opened if o.subject.group_id is not None})
    of_group = {t.key: tasks[o.subject.group_id] for t, o in zip(read, opened, strict=True) if o.subject.group_id is not None}
    return History(twins, of_group, _same_state(session, project, opened, read), _replayed(session, opened, read))


def _replayed(session: Session, opened: Sequence[Opened], read: Sequence[Trajectory]) -> dict[str, Replayed]:
    left = [o.subject.key for o, t in zip(opened, read, strict=True) if t.header.artifacts]
    found = replays.of(session, left) if left else {}
    return {str(key): Replayed(one.rewards, one.note) for key, one in found.items()}


def _same_state(session: Session, project: int, opened: Sequence[Opened], read: Sequence[Trajectory]) -> dict[str, Sequence[Twin]]:
    left = [(o, t.key, state) for o, t in zip(opened, read, strict=True) if (state := state_of(t.header, o.subject.task)) is not None]
    if not left:
        return {}
    found = _alike(session, project, [o for o, *_ in left], [state for *_, state in left], trajectories.same_state)
    return {key: others for (_, key, _), others in zip(left, found, strict=True) if others}


def twins_of(session: Session, project: int, opened: Sequence[Opened], contents: Sequence[int]) -> list[list[Twin]]:
    """For each trajectory: others of its task, stored or in the same block, with the same steps."""
    return _alike(session, project, opened, contents, trajectories.twins)


_Look = Callable[[Session, int, Sequence[int]], Mapping[int, Sequence[tuple[str, float | None, int, UUID]]]]


def _alike(session: Session, project: int, opened: Sequence[Opened], numbers: Sequence[int], look: _Look) -> list[list[Twin]]:
    stored = look(session, project, numbers)
    beside: dict[tuple[int, int], list[Opened]] = {}
    for o, number in zip(opened, numbers, strict=True):
        beside.setdefault((number, o.subject.task), []).append(o)
    found = []
    for o, number in zip(opened, numbers, strict=True):
        known = {key: Twin(id_, reward) for id_, reward, task, key in stored.get(number, ()) if task == o.subject.task}
        known |= {other.subject.key: Twin(other.subject.id, other.subject.reward) for other in beside[number, o.subject.task]}
        known.pop(o.subject.key, None)
        found.append(list(known.values()))
    return found
