"""Makes HTTP calls that end in time, whatever the other side does."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Mapping
from importlib import import_module

import httpx

from inspector import __version__
from inspector.client.protocol import Head, Reply, head

import_module("anyio._backends._asyncio")  # else the first call in a process loads it, within some trainer's deadline
ANSWER_BYTES = 64 << 20
CONNECT_S = 5.0
USER_AGENT = f"inspector-client/{__version__}"


def _not_ours(record: logging.LogRecord) -> bool:
    return not (record.threadName or "").startswith("inspector-")


logging.getLogger("httpx").addFilter(_not_ours)  # it logs every request as INFO: a trainer's log is not the place for our long polls


class Away(Exception):
    """No whole answer came, in time or at all; the message says why."""


def headers_of(key: str) -> dict[str, str]:
    """Sent with every request."""
    return {"Authorization": f"Bearer {key}", "User-Agent": USER_AGENT}


class Wire:
    """One connection pool, used from one event loop."""

    def __init__(self, url: str, key: str) -> None:
        # Without TLS, a context that trusts nobody is made in a millisecond; one with all authorities takes the first call's time.
        verify = True if url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._http = httpx.AsyncClient(base_url=url, headers=headers_of(key), timeout=None, verify=verify)  # noqa: S113 (each call has a limit as a whole)
        self.heard: Head | None = None  # the feed's head in the latest answer

    async def call(
        self,
        method: str,
        path: str,
        *,
        timeout_s: float,
        params: Mapping[str, str | int | float] | None = None,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> Reply:
        """One call, connection and body included, in at most `timeout_s`; raises Away."""
        try:
            async with asyncio.timeout(timeout_s):
                reply = await self._read(method, path, params, headers, content)
        except TimeoutError as error:
            raise Away(f"{method} {path}: no whole answer within {timeout_s:.3g} s") from error
        except (httpx.HTTPError, httpx.StreamError, OSError, ssl.SSLError, ValueError) as error:
            raise Away(f"{method} {path}: {type(error).__name__}: {error}"[:300]) from error
        self.heard = head(reply.headers) or self.heard
        return reply

    async def close(self) -> None:
        """Drop the connections."""
        await self._http.aclose()

    async def _read(
        self, method: str, path: str, params: Mapping[str, str | int | float] | None, headers: Mapping[str, str] | None, content: bytes | None
    ) -> Reply:
        request = self._http.build_request(method, path, params=params, headers=headers, content=content)
        response = await self._http.send(request, stream=True)
        body = bytearray()
        try:
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > ANSWER_BYTES:
                    raise Away(f"{method} {path}: an answer above {ANSWER_BYTES} bytes")
        finally:
            await response.aclose()
        return Reply(response.status_code, response.headers, bytes(body))
