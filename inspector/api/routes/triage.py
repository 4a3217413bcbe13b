"""What waits for a person, and what the person says."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from inspector import review
from inspector.api import cursors
from inspector.api.access import Reader
from inspector.api.answers import answer
from inspector.api.openapi import documented
from inspector.api.parameters import After, Key, Limit
from inspector.api.reading import JsonBody
from inspector.api.routes.trajectories import line
from inspector.api.sessions import SessionDep
from inspector.api.wire import ReviewRequest, TrajectoryPage
from inspector.store import decisions, trajectories, verdicts
from inspector.store.verdicts import Cursor
from inspector.verdict import Decision

router = APIRouter()


@router.get("/v1/triage", **documented(TrajectoryPage))
def list_triage(session: SessionDep, who: Reader, after: After = None, limit: Limit = 50) -> Response:
    """Open flagged and quarantined trajectories, worst first."""
    places = verdicts.triage(session, who.project, cursors.decode(after, Cursor) if after else None, limit)
    keys = [place.key for place in places]
    why = verdicts.first_findings(session, keys)
    found = trajectories.summaries(session, who.project, keys)
    lines = [line(summary, why[summary.key].message if summary.key in why else None) for summary in found]
    return answer(TrajectoryPage(trajectories=lines, next=cursors.encode(places[-1]) if len(places) == limit else None, scanned=len(places)))


@router.post("/v1/trajectories/{key}/review", **documented(Decision, 404))
def review_trajectory(session: SessionDep, who: Reader, key: Key, said: Annotated[ReviewRequest, Depends(JsonBody(ReviewRequest))]) -> Response:
    """Accept, quarantine or override; the decision is final and stands in the feed."""
    decision = review.judge(session, who.project, key, who.name, said.judgement, said.reward, said.note)
    decisions.notify(session, [who.project])
    return answer(decision)
