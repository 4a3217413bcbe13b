"""Training runs: whether what is decided binds them, and what their updates were trained on."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Query, Response

from inspector import contamination
from inspector.api import cursors
from inspector.api.access import Member, Owner, Poster
from inspector.api.answers import answer, encode
from inspector.api.openapi import documented
from inspector.api.parameters import After, Limit, Name, Step
from inspector.api.reading import LARGE, JsonBody
from inspector.api.sessions import ServiceDep, SessionDep
from inspector.api.wire import ModeRequest, RunLine, RunPage, RunStepAnswer, RunStepPage, RunStepRequest
from inspector.errors import BadSubmission
from inspector.store import runs
from inspector.store.runs import RunSummary
from inspector.store.used import Told, Use

router = APIRouter()


@router.get("/v1/runs", **documented(RunPage))
def list_runs(session: SessionDep, who: Member, after: After = None, limit: Limit = 50) -> Response:
    """Newest first."""
    found = runs.page(session, who.project, cursors.decode(after, int) if after else None, limit)
    return answer(RunPage(runs=[_line(run) for run in found], next=cursors.encode(found[-1].id) if len(found) == limit else None))


# What is below a run comes first: its name may hold slashes.


@router.post("/v1/runs/{run:path}/steps/{step}", **documented(RunStepAnswer, 201, 200, 409))
def post_step(
    session: SessionDep,
    service: ServiceDep,
    who: Poster,
    run: Name,
    step: Step,
    said: Annotated[RunStepRequest, Depends(JsonBody(RunStepRequest, LARGE))],
) -> Response:
    """What one update was trained on. The same report again is a duplicate; another one for the same step and attempt is a conflict.

    A trainer that goes back to a checkpoint repeats steps under another `attempt`.
    """
    if said.policy_after < said.policy_before:
        raise BadSubmission(f"{said.policy_after} is before the version {said.policy_before} that the update began from", path="$.policy_after")
    told = Told(
        step=step,
        attempt=said.attempt,
        policy_before=said.policy_before,
        policy_after=said.policy_after,
        checkpoint=said.checkpoint,
        used=[Use(one.id, one.weight, one.reward) for one in said.used],
        body=encode(said),
    )
    created = contamination.report(session, who.project, run, told, share=service.settings.rollback_share)
    return answer(RunStepAnswer(run=run, step=step, status="created" if created else "duplicate"), 201 if created else 200)


@router.get("/v1/runs/{run:path}/steps", **documented(RunStepPage, 404))
def list_steps(
    session: SessionDep,
    who: Member,
    run: Name,
    start: Annotated[int, Query(ge=0, le=2**53, description="the first step, where no cursor is given")] = 0,
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """In the order of the steps."""
    found = runs.steps(session, runs.find(session, who.project, run).id, cursors.decode(after, int) if after else start - 1, limit)
    steps: list[dict[str, Any]] = [{"step": step, **msgspec.json.decode(body)} for step, body in found]
    return answer(RunStepPage(steps=steps, next=cursors.encode(found[-1][0]) if len(found) == limit else None))


@router.get("/v1/runs/{run:path}", **documented(RunLine, 404))
def read_run(session: SessionDep, who: Member, run: Name) -> Response:
    """One run."""
    return answer(_line(runs.find(session, who.project, run)))


@router.put("/v1/runs/{run:path}", **documented(RunLine))
def set_mode(session: SessionDep, who: Owner, run: Name, wanted: Annotated[ModeRequest, Depends(JsonBody(ModeRequest))]) -> Response:
    """Put a run in observe or enforce; one that posted nothing yet is made."""
    runs.set_mode(session, who.project, run, wanted.mode)
    return answer(_line(runs.find(session, who.project, run)))


def _line(run: RunSummary) -> RunLine:
    return RunLine(run=run.run, trainer=run.trainer, mode=run.mode, created_at=run.created_at, stopped=run.stopped)
