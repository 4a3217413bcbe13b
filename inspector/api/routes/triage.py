"""What waits for a person, and what the person says."""

from __future__ import annotations

from datetime import UTC, datetime, time
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from sqlmodel import Session

from inspector import review
from inspector.api import cursors
from inspector.api.access import Reader
from inspector.api.answers import answer
from inspector.api.openapi import documented
from inspector.api.parameters import After, Key, Limit, Name
from inspector.api.reading import JsonBody
from inspector.api.routes.trajectories import VERDICTS, line
from inspector.api.sessions import SessionDep
from inspector.api.wire import ReviewRequest, TrajectoryPage, TriageCounts
from inspector.errors import BadSubmission, Unknown
from inspector.store import decisions, environments, reviews, runs, trajectories, triage, verdicts
from inspector.store.codes import CAUSE_CODE
from inspector.store.triage import Cursor, Narrowing, Places
from inspector.verdict import Cause, Decision

router = APIRouter()
MOST_COUNTED = 10_000


@router.get("/v1/triage", **documented(TrajectoryPage))
def list_triage(
    session: SessionDep,
    who: Reader,
    verdict: Annotated[str | None, Query(pattern="^(flag|quarantine)$")] = None,
    cause: Annotated[Cause | None, Query()] = None,
    environment: Annotated[Name | None, Query()] = None,
    version: Annotated[Name | None, Query()] = None,
    run: Annotated[Name | None, Query()] = None,
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """Open flagged and quarantined trajectories, worst first, each with its worst finding.

    A page may hold fewer than `limit` and still have a next one: `scanned` says how many rows were looked at.
    """
    try:
        narrowed = _narrowed(session, who.project, verdict, cause, environment, version, run)
    except Unknown:
        return answer(TrajectoryPage(trajectories=[], next=None, scanned=0))
    found = _places(session, who.project, narrowed, cursors.decode(after, Cursor) if after else None, limit)
    keys = [place.key for place in found.places]
    why = verdicts.first_findings(session, keys)
    lines = [line(summary, why.get(summary.key)) for summary in trajectories.summaries(session, who.project, keys)]
    return answer(TrajectoryPage(trajectories=lines, next=cursors.encode(found.last) if found.last else None, scanned=found.scanned))


def _places(session: Session, project: int, narrowed: Narrowing, after: Cursor | None, limit: int) -> Places:
    if narrowed.tests:
        return triage.narrowed(session, project, narrowed, after, limit)
    places = triage.page(session, project, after, limit)
    return Places(places, len(places), places[-1] if len(places) == limit else None)


def _narrowed(
    session: Session, project: int, verdict: str | None, cause: Cause | None, environment: str | None, version: str | None, run: str | None
) -> Narrowing:
    """The rows' ids; raises Unknown where the project has nothing of that name."""
    if (environment is None) != (version is None):
        raise BadSubmission("environment and version go together", path="query.version" if version is None else "query.environment")
    return Narrowing(
        verdict=VERDICTS[verdict] if verdict is not None else None,
        cause=CAUSE_CODE[cause] if cause is not None else None,
        environment_version=environments.find(session, project, environment, version) if environment is not None and version is not None else None,
        run=runs.find(session, project, run).id if run is not None else None,
    )


@router.get("/v1/triage/counts", **documented(TriageCounts))
def count_triage(session: SessionDep, who: Reader) -> Response:
    """How many wait, by verdict, and how many were judged since midnight in UTC; counting ends at `most`."""
    today = datetime.combine(datetime.now(UTC).date(), time(), UTC)
    waiting, reviewed = triage.counts(session, who.project, MOST_COUNTED), reviews.count_since(session, who.project, today, MOST_COUNTED)
    return answer(TriageCounts(waiting=waiting, reviewed_today=reviewed, today=today, most=MOST_COUNTED))


@router.post("/v1/trajectories/{key}/review", **documented(Decision, 404))
def review_trajectory(session: SessionDep, who: Reader, key: Key, said: Annotated[ReviewRequest, Depends(JsonBody(ReviewRequest))]) -> Response:
    """Accept, quarantine or override; the decision is final and stands in the feed."""
    decision = review.judge(session, who.project, key, who.name, said.judgement, said.reward, said.note, said.cause, canary=said.canary)
    decisions.notify(session, [who.project])
    return answer(decision)
