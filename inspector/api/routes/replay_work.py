"""Replays that a sandbox worker has claimed at the door of probe work: fetched, kept and reported with the same key."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from fastapi.responses import FileResponse

from inspector import replaying
from inspector.api.access import Prober
from inspector.api.answers import answer
from inspector.api.openapi import documented
from inspector.api.reading import LARGE, JsonBody
from inspector.api.routes.probe_work import Lease, Work
from inspector.api.sessions import ServiceDep, SessionDep
from inspector.assignments import ReplayReport, WorkState
from inspector.errors import Unknown
from inspector.store import artifacts, packages, replays

router = APIRouter()
PLAIN = {"X-Content-Type-Options": "nosniff"}


@router.get("/v1/replay-work/{work}/package", **documented(None, 404, 409))
def fetch_package_of_replay(session: SessionDep, service: ServiceDep, who: Prober, work: Work, lease: Lease) -> Response:
    """The tar of the version whose verifier grades."""
    known = packages.of(session, replays.graded_by(replays.held(session, work, lease)))
    if known.package.sha256 is None:
        raise Unknown("package of work", work)
    path = artifacts.path_of(service.settings.store_path / "artifacts", known.project_uuid, known.package.sha256)
    return FileResponse(path, media_type="application/octet-stream", headers=PLAIN)


@router.get("/v1/replay-work/{work}/state", **documented(None, 404, 409))
def fetch_state_of_replay(session: SessionDep, service: ServiceDep, who: Prober, work: Work, lease: Lease) -> Response:
    """The final state that is to be graded."""
    held = replays.held(session, work, lease)
    path = artifacts.path_of(service.settings.store_path / "artifacts", replays.project_uuid(session, held), held.state)
    return FileResponse(path, media_type="application/octet-stream", headers=PLAIN)


@router.post("/v1/replay-work/{work}/renew", **documented(WorkState, 404, 409))
def renew_replay(session: SessionDep, service: ServiceDep, who: Prober, work: Work, lease: Lease) -> Response:
    """Keep a claimed replay for another lease."""
    return answer(WorkState(work=work, state=replaying.renew(session, work, lease, service.settings.lease_s)))


@router.post("/v1/replay-work/{work}/report", **documented(WorkState, 404, 409))
def report_replay(
    session: SessionDep, who: Prober, work: Work, lease: Lease, said: Annotated[ReplayReport, Depends(JsonBody(ReplayReport, LARGE))]
) -> Response:
    """Say what the verifier paid."""
    return answer(WorkState(work=work, state=replaying.report(session, work, lease, said)))
