"""Answers and errors as bytes: JSON by msgspec, and one shape for everything that goes wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec
import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import compile_path

from inspector.errors import BadSubmission, Gone, InspectorError, TooMany, Unavailable
from inspector.showable import showable

log = structlog.get_logger()
JSON = "application/json"
NDJSON = "application/x-ndjson"
SNAPSHOT = "/v1/decisions/snapshot"
SHOWN = 200  # characters of a refused value that an answer repeats

encode = msgspec.json.Encoder().encode
encode_lines = msgspec.json.Encoder().encode_lines


class TooSlow(BadSubmission):
    """The body did not come in time."""

    status_code = 408


class Fault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was wrong, and where."""

    reason: str
    status: int
    path: str | None = None


class Refusal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Every answer of 400 and above."""

    error: Fault
    snapshot: str | None = None  # with 410: where to start anew


def answer(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Anything that msgspec encodes."""
    return Response(encode(body), status, headers, JSON)


def refusal(reason: str, status: int, path: str | None = None, headers: Mapping[str, str] | None = None, snapshot: str | None = None) -> Response:
    """An error answer."""
    return answer(Refusal(error=Fault(reason=reason, status=status, path=path), snapshot=snapshot), status, headers)


def of_error(error: InspectorError) -> Response:
    """What an error of ours says to a caller; what is not meant for callers stays in the log."""
    if isinstance(error, TooMany):
        return refusal(error.reason, error.status_code, error.path, _retry_after(error.retry_after_s))
    if isinstance(error, BadSubmission):
        headers = {"WWW-Authenticate": "Bearer"} if error.status_code == 401 else None
        return refusal(error.reason, error.status_code, error.path, headers, SNAPSHOT if isinstance(error, Gone) else None)
    if isinstance(error, Unavailable):
        return refusal(error.reason, error.status_code, None, _retry_after(error.retry_after_s))
    log.error("failed", reason=showable(f"{type(error).__name__}: {error}", limit=1000))
    return refusal("the service failed; its log has the reason", 500)


def install(app: FastAPI) -> None:
    """One handler for each family of errors."""
    app.add_exception_handler(InspectorError, _ours)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _of_the_framework)
    app.add_exception_handler(ClientDisconnect, _gone_away)
    app.add_exception_handler(Exception, _unexpected)


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, InspectorError)
    return of_error(error)


async def _malformed(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    path = ".".join(str(part) for part in first["loc"])
    given = "" if first["type"] == "missing" else f", got {showable(str(first.get('input')), limit=SHOWN)!r}"
    return refusal(f"{first['msg']}{given}", 422, showable(path, limit=SHOWN))


async def _of_the_framework(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = {"Allow": _allowed(request)} if error.status_code == 405 else error.headers
    return refusal(str(error.detail), error.status_code, None, headers)


async def _gone_away(request: Request, error: Exception) -> Response:
    return refusal("the body was not sent to its end", 400)


async def _unexpected(request: Request, error: Exception) -> Response:
    headers = {"X-Request-Id": request.scope.get("request_id", "")}
    log.error("unexpected", request=headers["X-Request-Id"], exc_info=error)
    return refusal("the service failed; its log has the reason", 500, None, headers)


def _allowed(request: Request) -> str:
    """The methods of all routes at this address: the framework names those of the first alone."""
    address = request.scope["path"]
    routes = [route for route in iter_route_contexts(request.app.routes) if _pattern(str(route.path)).match(address)]
    return ", ".join(sorted({method for route in routes for method in route.methods or ()}))


@lru_cache(maxsize=256)
def _pattern(path: str) -> re.Pattern[str]:
    return compile_path(path)[0]


def _retry_after(seconds: float) -> dict[str, str]:
    return {"Retry-After": str(max(1, math.ceil(seconds)))}
