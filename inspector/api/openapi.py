"""The OpenAPI page: msgspec's structs are its schemas, the dependencies of a route tell its body, its roles and its refusals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute, RouteContext, iter_route_contexts

from inspector import __version__
from inspector.api.access import Allowed
from inspector.api.answers import JSON, NDJSON, Refusal
from inspector.api.reading import JsonBody

REF = "#/components/schemas/{name}"
MEANING = {
    200: "done",
    201: "made",
    204: "done; there is nothing to say",
    304: "nothing new",
    400: "the request could not be read",
    401: "no key, or one that is unknown, expired or revoked",
    403: "the key's role is not enough",
    404: "nothing there that this key may see",
    408: "the body did not come in time",
    409: "used already, for something else",
    410: "the cursor speaks of another epoch or of what the log no longer holds",
    413: "too large",
    415: "a content type or encoding that is not read",
    422: "cannot be accepted; the answer says which field and why",
    429: "over the project's rate, or too much in flight",
    503: "away for now; the same call is worth repeating",
    507: "no room left; nothing was stored",
}
_DOCUMENTED: list[dict[str, Any]] = []  # FastAPI takes nothing but JSON along with a route, so it gets the position in this list
_MARK = "x-documented"
_OF_BODIES = (400, 408, 413, 415, 422)


def documented(kind: type[Any] | None, *statuses: int, body: type[Any] | None = None, lines: bool = False) -> dict[str, Any]:
    """Arguments of a route's decorator. `statuses` are those beside 200 (or in its place, when a 2xx is first) and the usual refusals."""
    made = [status for status in statuses if status < 300] or [200]
    _DOCUMENTED.append({"kind": kind, "statuses": statuses, "made": made, "body": body, "lines": lines})
    return {"response_model": None, "status_code": made[0], "openapi_extra": {_MARK: len(_DOCUMENTED) - 1}}


def install(app: FastAPI) -> None:
    """Put our description in the place of FastAPI's own."""

    def describe() -> dict[str, Any]:
        if not app.openapi_schema:
            app.openapi_schema = _describe(app)
        return app.openapi_schema

    app.openapi = describe  # type: ignore[method-assign]


def _describe(app: FastAPI) -> dict[str, Any]:
    routes = api_routes(app)
    kinds: set[Any] = {Refusal}
    for route in routes:
        told = _told(route)
        kinds |= {kind for kind in (told["kind"], told["body"], *(body.kind for body in of_kind(route, JsonBody))) if kind is not None}
    _, schemas = msgspec.json.schema_components(sorted(kinds, key=lambda kind: kind.__name__), ref_template=REF)
    document = get_openapi(title="inspector", version=__version__, description="Quality inspection between RL environments and RL trainers.", routes=routes)
    document.setdefault("components", {}).setdefault("schemas", {}).update(schemas)
    document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    for route in routes:
        for method in route.methods or ():
            _complete(document["paths"][str(route.path_format)][method.lower()], route)
    return document


def api_routes(app: FastAPI) -> list[RouteContext]:
    """Every route that answers for us, those of included routers with what they were included with."""
    return [route for route in iter_route_contexts(app.routes) if isinstance(route.original_route, APIRoute)]


def of_kind(route: RouteContext, kind: type[Any]) -> Iterator[Any]:
    """The dependencies of a route that are of this kind."""
    waiting: list[Dependant] = [route.dependant]
    while waiting:
        dependant = waiting.pop()
        if isinstance(dependant.call, kind):
            yield dependant.call
        waiting += dependant.dependencies


def _told(route: RouteContext) -> dict[str, Any]:
    position: int = (route.openapi_extra or {})[_MARK]
    return _DOCUMENTED[position]


def _complete(operation: dict[str, Any], route: RouteContext) -> None:
    told = _told(route)
    operation.pop(_MARK, None)
    bodies = [body.kind for body in of_kind(route, JsonBody)]
    if told["body"] is not None:
        content = {JSON: {"schema": _reference(told["body"])}, NDJSON: {"schema": {"type": "string", "format": "binary"}}}
        operation["requestBody"] = {"required": True, "content": content}
    elif bodies:
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": _reference(bodies[0])}}}
    secured = next(of_kind(route, Allowed), None)
    if secured is not None:
        operation["security"] = [{"key": []}]
        operation["x-roles"] = [role.value for role in secured.roles]
    statuses = {*told["made"], *told["statuses"], 422, 503}
    statuses |= {401, 403} if secured is not None else set()
    statuses |= set(_OF_BODIES) if bodies or told["body"] is not None else set()
    operation["responses"] = {str(status): _response(status, told) for status in sorted(statuses)}


def _response(status: int, told: dict[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {"description": MEANING[status]}
    if status in (204, 304):
        return described
    kind = told["kind"] if status < 300 else Refusal
    if told["lines"] and status in (409, 422):
        described["content"] = {JSON: {"schema": {"anyOf": [_reference(told["kind"]), _reference(Refusal)]}}}
    elif kind is not None:
        described["content"] = {JSON: {"schema": _reference(kind)}}
        if told["lines"] and status == 200:
            described["content"][NDJSON] = {"schema": {"type": "string", "format": "binary"}}
    return described


def _reference(kind: Any) -> dict[str, str]:
    return {"$ref": REF.format(name=kind.__name__)}
