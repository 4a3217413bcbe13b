"""Turns away requests that reached this server under a foreign name or from a foreign page, and says so in every answer's headers."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Transcripts are hostile: even a page that they took over could load nothing and send nothing elsewhere.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:;"
    " font-src 'self' data:; worker-src 'self' blob:; connect-src 'self' blob: data:;"
    " object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY"}


class Guard:
    """ASGI middleware over pages, proxy and websocket alike."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or refuse with 421 (name) or 403 (page)."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = refused(headers.get("host"), headers.get("origin"), self._hosts)
        if refusal is None:
            await self._app(scope, receive, _with_headers(send))
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": refusal[1]})
        else:
            await PlainTextResponse(refusal[1] + "\n", refusal[0], HEADERS)(scope, receive, send)


def refused(host: str | None, origin: str | None, hosts: Collection[str]) -> tuple[int, str] | None:
    """(status, reason) for a request that must not pass: DNS rebinding shows in Host, another page's in Origin."""
    if name_of(host) not in hosts:
        return 421, "this server is not reached under that name; INSPECTOR_DASHBOARD_HOSTS lists further ones"
    if origin is not None and origin.partition("://")[2].lower() != (host or "").lower():
        return 403, "a page of another origin may not ask this server"
    return None


def name_of(host: str | None) -> str:
    """A Host header without its port, in lower case; empty for one that cannot be read."""
    try:
        return urlsplit(f"//{host or ''}").hostname or ""
    except ValueError:
        return ""


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending
