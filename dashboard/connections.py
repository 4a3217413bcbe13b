"""The connections to the API, which all sessions of this process share."""

from __future__ import annotations

from functools import cache

import httpx

from inspector.client.http import Api

TIMEOUT_S = 20.0


class Shared(httpx.BaseTransport):
    """Stays open when one of its clients is closed."""

    def __init__(self) -> None:
        self._transport = httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send it on a connection that is there, or on a new one."""
        return self._transport.handle_request(request)


@cache
def _shared() -> Shared:
    return Shared()  # made once: reading the certificates of the machine takes longer than most calls


def opened(url: str, secret: str) -> Api:
    """Calls with the authority of this secret."""
    return Api(url, secret, timeout_s=TIMEOUT_S, transport=_shared())
