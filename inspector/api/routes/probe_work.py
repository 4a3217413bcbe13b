"""The work of probes, for sandbox workers: claimed, fetched, kept and reported with a key that may do nothing else."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response
from fastapi.responses import FileResponse

from inspector import probing, replaying
from inspector.api.access import Prober
from inspector.api.answers import answer
from inspector.api.openapi import documented
from inspector.api.reading import LARGE, JsonBody
from inspector.api.sessions import ServiceDep, SessionDep
from inspector.assignments import Assignment, WorkReport, WorkState
from inspector.errors import Unknown
from inspector.store import artifacts, packages, probe_work, probes

router = APIRouter()
Work = Annotated[int, Path(ge=0, le=2**62)]
Lease = Annotated[int, Query(ge=0, le=2**62, description="as it was given with the work")]


@router.post("/v1/probe-work", **documented(Assignment, 200, 204))
def claim_work(session: SessionDep, service: ServiceDep, who: Prober) -> Response:
    """Lease what is due first of probes, else a replay; 204 where nothing waits."""
    assignment = probing.claim(session, service.settings.lease_s) or replaying.claim(session, service.settings.lease_s)
    return Response(None, 204) if assignment is None else answer(assignment)


@router.get("/v1/probe-work/{work}/package", **documented(None, 404, 409))
def fetch_package(session: SessionDep, service: ServiceDep, who: Prober, work: Work, lease: Lease) -> Response:
    """The tar of the version that a claimed work is about."""
    held = probe_work.held(session, work, lease)
    known = packages.of(session, probes.find(session, None, held.probe).environment_version)
    if known.package.sha256 is None:
        raise Unknown("package of work", work)
    path = artifacts.path_of(service.settings.store_path / "artifacts", known.project_uuid, known.package.sha256)
    return FileResponse(path, media_type="application/octet-stream", headers={"X-Content-Type-Options": "nosniff"})


@router.post("/v1/probe-work/{work}/renew", **documented(WorkState, 404, 409))
def renew_lease(session: SessionDep, service: ServiceDep, who: Prober, work: Work, lease: Lease) -> Response:
    """Keep a claimed work for another lease."""
    return answer(WorkState(work=work, state=probing.renew(session, work, lease, service.settings.lease_s)))


@router.post("/v1/probe-work/{work}/report", **documented(WorkState, 404, 409))
def report_work(session: SessionDep, who: Prober, work: Work, lease: Lease, said: Annotated[WorkReport, Depends(JsonBody(WorkReport, LARGE))]) -> Response:
    """Close a claimed work with what was found."""
    return answer(WorkState(work=work, state=probing.report(session, work, lease, said)))
