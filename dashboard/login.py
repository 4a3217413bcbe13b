"""Signing in by a one-time address and out again; the session's secret lives in a cookie that no script can read."""

from __future__ import annotations

from datetime import UTC, datetime

import httpx
import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from dashboard.configuration import Configuration

NO_STORE = {"Cache-Control": "no-store"}
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>inspector</title>
<style>:root{color-scheme:light dark}body{font:15px/1.6 system-ui,sans-serif;max-width:36rem;margin:18vh auto;padding:0 1.5rem}
h1{font-size:1.2rem}
code{font-family:ui-monospace,monospace;background:color-mix(in srgb,currentColor 9%,transparent);padding:.15em .4em;
border-radius:4px}</style>
<h1>{title}</h1><p>{text}</p><p>A new one: <code>inspector login</code>, or the address that <code>inspector up</code> printed.</p></html>"""


class Session(msgspec.Struct):
    """What the API gives for a login token."""

    key: str
    expires_at: datetime


class Doors:
    """The routes of signing in and out."""

    def __init__(self, configuration: Configuration, client: httpx.AsyncClient) -> None:
        self._configuration, self._client = configuration, client

    async def login(self, request: Request) -> Response:
        """Exchange the token for a session, and go to the pages without it in the address."""
        token = request.query_params.get("token", "")
        if not 1 <= len(token) <= 200:
            return _page("This address has no login token.", "A login address ends in ?token=…", 400)
        try:
            answer = await self._client.post("/v1/logins/exchange", json={"token": token})
        except httpx.HTTPError:
            return _page("The service is not reachable.", "The address was not used up; try it again in a moment.", 503)
        if answer.status_code != 201:
            if answer.status_code == 401:
                return _page("This login address no longer works.", "It works once and for a short time.", 401)
            return _page("Signing in failed.", f"The service answered {answer.status_code}.", 502)
        response = RedirectResponse("/", 303, NO_STORE)
        self._keep(request, response, msgspec.json.decode(answer.content, type=Session))
        return response

    async def logout(self, request: Request) -> Response:
        """End the session at the API and forget its secret."""
        secret = request.cookies.get(self._configuration.cookie)
        if secret:
            try:
                await self._client.delete("/v1/logins/session", headers={"Authorization": f"Bearer {secret}"})
            except (httpx.HTTPError, ValueError):
                return _page("The service is not reachable.", "You are still signed in; try it again in a moment.", 503)
        response = _page("You are signed out.", "This browser no longer knows the session, and the service ended it.", 200)
        response.delete_cookie(self._configuration.cookie, path="/", httponly=True, samesite="strict")
        return response

    def _keep(self, request: Request, response: Response, session: Session) -> None:
        left_s = max(0, int((session.expires_at - datetime.now(UTC)).total_seconds()))
        secure = request.url.scheme == "https"
        response.set_cookie(self._configuration.cookie, session.key, max_age=left_s, path="/", secure=secure, httponly=True, samesite="strict")


def _page(title: str, text: str, status: int) -> HTMLResponse:
    return HTMLResponse(_PAGE.replace("{title}", title).replace("{text}", text), status, NO_STORE)
