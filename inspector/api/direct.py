"""A route that is called directly: solving dependencies costs a small request more than all the rest of it."""

from __future__ import annotations

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

from inspector.api.access import Allowed


class Direct(APIRoute):
    """For a function of the request and the caller whose other parameters have defaults; a request with a query goes the usual way."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The same answer as the usual way gives."""
        if scope["query_string"] or scope["method"] not in (self.methods or ()):
            await super().handle(scope, receive, send)
            return
        request = Request(scope, receive, send)
        response = await self.endpoint(request, await self._allowed(request))
        await response(scope, receive, send)

    @property
    def _allowed(self) -> Allowed:
        (allowed,) = (dependency.call for dependency in self.dependant.dependencies if isinstance(dependency.call, Allowed))
        return allowed
