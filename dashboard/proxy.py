"""Gives the transcript its steps, its findings and its search from the API, with the authority of the person whose browser asks."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx
import msgspec
from starlette.requests import Request
from starlette.responses import Response

from dashboard import steps
from dashboard.configuration import Configuration
from dashboard.wording import facts, findings
from inspector.showable import showable

JSON = "application/json"
FRESH = {"Cache-Control": "no-store"}  # whoever asks next may be someone else, in the same browser


class Window(msgspec.Struct):
    """As the API gives it; each step as it was posted."""

    total: int
    start: int
    steps: list[msgspec.Raw]


class Proxy:
    """The routes below /proxy."""

    def __init__(self, configuration: Configuration, client: httpx.AsyncClient) -> None:
        self._configuration, self._client = configuration, client

    async def steps(self, request: Request) -> Response:
        """A window of steps, ready to be painted."""
        answer = await self._ask(request, "steps", ("start", "count"))
        if answer.status_code != 200:
            return _passed_on(answer)
        window, whole = msgspec.json.decode(answer.content, type=Window), request.query_params.get("whole")
        shown = [steps.shown(window.start + at, bytes(raw), whole) for at, raw in enumerate(window.steps)]
        return _json({"total": window.total, "start": window.start, "steps": shown})

    async def findings(self, request: Request) -> Response:
        """What stands above the steps, as the page gives it later."""
        answer = await self._ask(request, "", ())
        if answer.status_code != 200:
            return _passed_on(answer)
        detail = msgspec.json.decode(answer.content)
        return _json({"title": facts.title(detail["summary"], ()), "findings": findings.shown(detail["findings"])})

    async def search(self, request: Request) -> Response:
        """Places of a text; what is around them made showable."""
        answer = await self._ask(request, "search", ("q", "after"))
        if answer.status_code != 200:
            return _passed_on(answer)
        found: dict[str, Any] = msgspec.json.decode(answer.content)
        for match in found["matches"]:
            match |= {name: showable(match[name]) for name in ("before", "match", "after")}
        return _json(found)

    async def _ask(self, request: Request, what: str, names: tuple[str, ...]) -> httpx.Response:
        secret = request.cookies.get(self._configuration.cookie)
        if not secret:
            return httpx.Response(401, json={"error": {"reason": "you are not signed in", "status": 401}})
        parameters = {name: request.query_params[name] for name in names if name in request.query_params}
        path = f"/v1/trajectories/{quote(request.path_params['key'], safe='')}{what and f'/{what}'}"
        try:
            return await self._client.get(path, params=parameters, headers={"Authorization": f"Bearer {secret}"})
        except httpx.HTTPError as error:
            return httpx.Response(503, json={"error": {"reason": f"the service is not reachable: {type(error).__name__}", "status": 503}})


def _passed_on(answer: httpx.Response) -> Response:
    """A refusal of the API in one line that may be shown."""
    try:
        reason = str(msgspec.json.decode(answer.content)["error"]["reason"])
    except (msgspec.DecodeError, KeyError, TypeError):
        reason = f"the service answered {answer.status_code}"
    return _json({"reason": showable(reason, limit=500)}, answer.status_code)


def _json(body: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(body), status, FRESH, JSON)
