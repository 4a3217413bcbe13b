"""What operators look at: alive, ready, and the numbers."""

from __future__ import annotations

import time

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from inspector.api.access import open_to_all
from inspector.api.answers import answer
from inspector.api.openapi import documented
from inspector.api.sessions import ServiceDep
from inspector.api.wire import ReadyAnswer

router = APIRouter(dependencies=[open_to_all])
FRESH_S = 1.0  # anybody may ask, and the store is written to find out


@router.get("/healthz", **documented(None))
async def healthz() -> Response:
    """The process is there."""
    return answer({"alive": True})


@router.get("/readyz", **documented(ReadyAnswer, 503))
def readyz(request: Request, service: ServiceDep) -> Response:
    """Whether work can be taken now: the database answers and the store can be written. Redis is told of, and not needed."""
    state = request.app.state
    at, body = getattr(state, "ready", (0.0, None))
    if body is None or time.monotonic() - at > FRESH_S:
        red, amber = service.troubles()
        body = ReadyAnswer(ready=not red, red=red, amber=amber)
        state.ready = (time.monotonic(), body)
    return answer(body, 200 if body.ready else 503)


@router.get("/metrics", **documented(None))
def metrics(service: ServiceDep) -> Response:
    """Prometheus's text format."""
    return Response(service.metrics.page(), 200, media_type=CONTENT_TYPE_LATEST)
