"""What is the same for every request: an id, safe headers, a count, and one line in the log."""

from __future__ import annotations

import itertools
import re
import secrets
import time

import structlog
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from inspector.api.metrics import Metrics

log = structlog.get_logger()
_PROCESS = secrets.token_hex(4)
_numbers = itertools.count(1)
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_QUIET = {"/healthz", "/readyz", "/metrics"}


class Observed:
    """An ASGI middleware; routes put what is worth logging into `scope["told"]`."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        scope["request_id"] = request_id = _request_id(scope)
        scope["told"] = {}
        status = 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = request_id
                headers["X-Content-Type-Options"] = "nosniff"
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            self._note(scope, status, time.perf_counter() - began)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "unknown")
        self._metrics.observe(scope["method"] if route != "unknown" else "-", route, status, seconds)
        if route in _QUIET or scope["told"].get("quiet"):
            return
        principal = scope.get("principal")
        log.info(
            "answered",
            request=scope["request_id"],
            method=scope["method"],
            route=route,
            status=status,
            ms=round(seconds * 1000, 1),
            project=principal.project_name if principal else None,
            key=str(principal.key) if principal else None,
            **scope["told"],
        )


def _request_id(scope: Scope) -> str:
    """The caller's own, where it is harmless."""
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            given: str = value.decode("latin-1")
            if _REQUEST_ID.fullmatch(given):
                return given
    return f"{_PROCESS}-{next(_numbers):x}"
