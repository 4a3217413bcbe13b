"""What was out and may be learnt from after all, and the grading anew by a repaired verifier."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from inspector import regrading
from inspector.api import cursors
from inspector.api.access import Member, Owner
from inspector.api.answers import answer
from inspector.api.openapi import documented
from inspector.api.parameters import After, Limit, Name
from inspector.api.reading import JsonBody
from inspector.api.routes.environments import VERSION
from inspector.api.sessions import SessionDep
from inspector.api.wire_recycling import RecycledLine, RecycledPage, RegradeAnswer, RegradeRequest
from inspector.store import recycling, runs
from inspector.store.recycling import Recycled

router = APIRouter()
MaxAge = Annotated[int | None, Query(ge=0, le=2**53, description="policy versions between the one that made a trajectory and the run's newest")]


@router.post(VERSION + "/regrade", **documented(RegradeAnswer, 201, 404))
def regrade(
    session: SessionDep, who: Owner, environment: Name, version: Name, wanted: Annotated[RegradeRequest, Depends(JsonBody(RegradeRequest))]
) -> Response:
    """Have the final states that are out because of this version's verifier graded by the package of a version in which it is repaired."""
    asked = regrading.ask(session, who.project, environment, version, wanted.by, wanted.most)
    return answer(RegradeAnswer(regrade=asked, environment=environment, version=version, by=wanted.by, most=wanted.most), 201)


@router.get("/v1/runs/{run:path}/recycled", **documented(RecycledPage, 404))
def list_recycled(session: SessionDep, who: Member, run: Name, max_age_steps: MaxAge = None, after: After = None, limit: Limit = 50) -> Response:
    """What a replay buffer may take up again: it was out or on hold, stands by now, has a reward, and was used by no update of the run."""
    found = runs.find(session, who.project, run).id
    newest = recycling.newest_version(session, found)
    oldest = None if max_age_steps is None or newest is None else newest - max_age_steps
    page = recycling.page(session, who.project, found, cursors.decode(after, int) if after else 0, oldest, limit)
    lines = [_line(one, newest) for one in page]
    return answer(RecycledPage(run=run, policy_version=newest, trajectories=lines, next=cursors.encode(page[-1].seq) if len(page) == limit else None))


def _line(one: Recycled, newest: int | None) -> RecycledLine:
    assert one.reward is not None, "only what is scored is listed"
    return RecycledLine(
        id=one.id,
        key=one.key,
        group=one.group,
        environment=one.environment,
        version=one.version,
        task=one.task,
        posted=one.posted,
        reward=one.reward,
        policy_version=one.policy_version,
        staleness=None if newest is None or one.policy_version is None else newest - one.policy_version,
        action=one.action,
        seq=one.seq,
    )
