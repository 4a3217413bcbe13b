"""Reading trajectories: lists, one of them, its bytes, a window of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated
from uuid import UUID

import msgspec
from fastapi import APIRouter, Query, Response
from sqlmodel import Session

from inspector.api import cursors
from inspector.api.access import Reader
from inspector.api.answers import JSON, answer
from inspector.api.openapi import documented
from inspector.api.parameters import After, Key, Limit, Name
from inspector.api.service import Service
from inspector.api.sessions import ServiceDep, SessionDep
from inspector.api.wire import Coverage, ReviewLine, StepsAnswer, TrajectoryAnswer, TrajectoryLine, TrajectoryPage
from inspector.audit import group_work
from inspector.errors import BadSubmission, Unknown
from inspector.keys import received_at
from inspector.store import decisions, environments, groups, patches, reviews, runs, selections, trajectories, verdicts
from inspector.store.codes import ACTIONS, cause_of
from inspector.store.trajectories import Filter, Subject, Summary
from inspector.store.verdicts import Stored
from inspector.verdict import Finding, Outcome, Verdict

router = APIRouter()
WINDOW_BYTES = 4 << 20  # of steps in one answer; a single longer step is given whole
VERDICTS = {verdict.word: int(verdict) for verdict in Verdict}


@router.get("/v1/trajectories", **documented(TrajectoryPage))
def list_trajectories(
    session: SessionDep,
    who: Reader,
    environment: Annotated[Name | None, Query()] = None,
    version: Annotated[Name | None, Query()] = None,
    task: Annotated[Name | None, Query()] = None,
    run: Annotated[Name | None, Query()] = None,
    verdict: Annotated[str | None, Query(pattern="^(pending|accept|flag|quarantine)$")] = None,
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """Newest first. A page may hold fewer than `limit` and still have a next one: `scanned` says how many rows were looked at."""
    before = cursors.decode(after, UUID) if after else None
    try:
        narrowed = _filter(session, who.project, environment, version, task, run, verdict)
    except Unknown:
        return answer(TrajectoryPage(trajectories=[], next=None, scanned=0))
    found, scanned, last = trajectories.page(session, who.project, narrowed, before, limit)
    return answer(TrajectoryPage(trajectories=[line(s) for s in found], next=cursors.encode(last) if last else None, scanned=scanned))


@router.get("/v1/trajectories/by-id/{id:path}", **documented(TrajectoryAnswer, 404))
def read_by_id(session: SessionDep, service: ServiceDep, who: Reader, id: Name) -> Response:
    """One trajectory, by its producer's id."""
    return answer(_read(session, service, who.project, trajectories.key_of(session, who.project, id)))


@router.get("/v1/trajectories/{key}", **documented(TrajectoryAnswer, 404))
def read_trajectory(session: SessionDep, service: ServiceDep, who: Reader, key: Key) -> Response:
    """One trajectory: its envelope, verdict, findings and coverage, what was decided and what people said."""
    return answer(_read(session, service, who.project, key))


@router.get("/v1/trajectories/{key}/raw", **documented(None, 404))
def read_raw(session: SessionDep, service: ServiceDep, who: Reader, key: Key) -> Response:
    """The line as it was posted."""
    subject = trajectories.find(session, who.project, key)
    return Response(service.reader.line(subject.project_uuid, subject.location), 200, media_type=JSON)


@router.get("/v1/trajectories/{key}/steps", **documented(StepsAnswer, 404))
def read_steps(
    session: SessionDep,
    service: ServiceDep,
    who: Reader,
    key: Key,
    start: Annotated[int, Query(ge=0, le=2**31)] = 0,
    count: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Response:
    """Some steps, as they were posted; fewer than asked for where they are long."""
    subject = trajectories.find(session, who.project, key)
    window = service.reader.steps(subject.project_uuid, subject.location, start, count)
    steps, size = list[bytes](), 0
    for step in window.steps:
        if steps and size + len(step) > WINDOW_BYTES:
            break
        steps.append(step)
        size += len(step)
    return answer(StepsAnswer(total=window.total, start=start, steps=[msgspec.Raw(step) for step in steps], bytes=size))


def _filter(session: Session, project: int, environment: str | None, version: str | None, task: str | None, run: str | None, verdict: str | None) -> Filter:
    """The rows' ids; raises Unknown where the project has nothing of that name."""
    if (environment is None) != (version is None):
        raise BadSubmission("environment and version go together", path="query.version" if version is None else "query.environment")
    if task is not None and environment is None:
        raise BadSubmission("task needs its environment and version", path="query.environment")
    environment_version = environments.find(session, project, environment, version) if environment is not None and version is not None else None
    return Filter(
        environment_version=environment_version,
        task=environments.find_task(session, project, environment_version, task) if environment_version is not None and task is not None else None,
        run=runs.find(session, project, run).id if run is not None else None,
        verdict=VERDICTS[verdict] if verdict is not None else None,
    )


def line(summary: Summary, worst: Finding | None = None) -> TrajectoryLine:
    """A row as it is sent."""
    return TrajectoryLine(
        key=summary.key,
        id=summary.id,
        environment=summary.environment,
        version=summary.version,
        task=summary.task,
        run=summary.run,
        step=summary.step,
        group=summary.group,
        policy_version=summary.policy_version,
        reward=summary.reward,
        bytes=summary.length,
        verdict=Verdict(summary.verdict or 0).word,
        action=ACTIONS[summary.action] if summary.action is not None else None,
        cause=cause_of(summary.cause),
        probability=summary.probability,
        reward_override=summary.reward_override,
        final=bool(summary.final),
        open=bool(summary.open),
        seq=summary.seq,
        received_at=received_at(summary.key),
        why=worst.message if worst else None,
        why_check=worst.check if worst else None,
        why_tier=worst.tier if worst else None,
        why_cause=worst.cause if worst else None,
    )


def _read(session: Session, service: Service, project: int, key: UUID) -> TrajectoryAnswer:
    subject = trajectories.find(session, project, key)
    [summary] = trajectories.summaries(session, project, [key])
    stored = verdicts.stored(session, project, [key]).get(key)
    return TrajectoryAnswer(
        summary=line(summary),
        envelope=_envelope(service.reader.line(subject.project_uuid, subject.location), patches.of(session, [key]).get(key, {})),
        by_person=stored.by_person if stored else False,
        policy=selections.policy_name(session, stored.policy) if stored else None,
        findings=verdicts.findings(session, key) if stored else [],
        coverage=_coverage(session, subject, stored),
        decisions=decisions.history(session, project, key),
        group_impact=group_work.impact_of(groups.of(session, subject.group_id)) if subject.group_id is not None else None,
        reviews=[ReviewLine(**review._asdict()) for review in reviews.of(session, project, key)],
    )


def _envelope(posted: bytes, added: Mapping[str, bytes]) -> dict[str, msgspec.Raw]:
    """Everything but the document and the tokens, as they were posted, with what was added later."""
    envelope = msgspec.json.decode(posted, type=dict[str, msgspec.Raw])
    said = {name: value for name, value in envelope.items() if name not in ("trajectory", "tokens")}
    return said | {name: msgspec.Raw(value) for name, value in added.items()}


def _coverage(session: Session, subject: Subject, stored: Stored | None) -> dict[str, Coverage]:
    selected = selections.read(session, subject.selection)
    outcomes = stored.outcomes if stored else ()
    notes = stored.notes if stored else {}
    covered = {}
    for at, check in enumerate(selected):
        outcome = outcomes[at] if at < len(outcomes) else Outcome.PENDING
        covered[check.check] = Coverage(outcome=outcome.word, version=check.version, note=notes.get(at))
    return covered
