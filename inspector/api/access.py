"""Who may call a route: the bearer key, and the roles that the route declares."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy import Engine

from inspector.api.threads import Threads
from inspector.errors import Forbidden, Unauthenticated
from inspector.store import projects
from inspector.store.projects import Principal, Role
from inspector.store.session import transaction

FRESH_S = 2.0  # how long a revoked key may still be taken for good by this process
MOST = 10_000  # keys remembered, good or bad


class Keys:
    """The keys seen lately, so that most requests need no query. One question at a time for the same key."""

    def __init__(self, engine: Engine, threads: Threads, clock: Callable[[], float] = time.monotonic) -> None:
        self._engine, self._threads, self._clock = engine, threads, clock
        self._seen: dict[bytes, tuple[float, Principal | None]] = {}
        self._asked: dict[bytes, asyncio.Future[Principal | None]] = {}

    async def holder(self, secret: str) -> Principal:
        """Who holds this key; raises Unauthenticated, and Unavailable when it cannot be found out."""
        digest = projects.digest(secret)
        at, principal = self._seen.get(digest, (0.0, None))
        if at <= self._clock() - FRESH_S:
            principal = await self._ask(digest, secret)
        if principal is None:
            raise Unauthenticated("the key is unknown, expired or revoked")
        return principal

    async def _ask(self, digest: bytes, secret: str) -> Principal | None:
        asked = self._asked.get(digest)
        if asked is None:
            asked = asyncio.ensure_future(self._threads.read(self._look, secret))
            self._asked[digest] = asked
            asked.add_done_callback(lambda answer: self._heard(digest, self._clock(), answer))
        return await asyncio.shield(asked)

    def _heard(self, digest: bytes, at: float, answer: asyncio.Future[Principal | None]) -> None:
        del self._asked[digest]
        if len(self._seen) >= MOST:
            self._seen.clear()
        if not answer.cancelled() and answer.exception() is None:
            self._seen[digest] = (at, answer.result())

    def _look(self, secret: str) -> Principal | None:
        with transaction(self._engine) as session:
            try:
                return projects.authenticate(session, secret)
            except Unauthenticated:
                return None


class Allowed:
    """The roles of a route; stands among its dependencies, where tests and the OpenAPI page find it."""

    def __init__(self, *roles: Role) -> None:
        self.roles = roles

    async def __call__(self, request: Request) -> Principal:
        """The caller; raises Unauthenticated, Forbidden."""
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            raise Unauthenticated("send 'Authorization: Bearer ins_…'")
        keys: Keys = request.app.state.service.keys
        principal = await keys.holder(secret.strip())
        request.scope["principal"] = principal
        if principal.role not in self.roles:
            raise Forbidden(f"a key of role {principal.role} may not do this; {', '.join(self.roles)} may")
        return principal


class Open:
    """Marks a route that needs no key."""

    async def __call__(self) -> None:
        """Nothing to check."""


TRAINER, REVIEWER, OWNER, ADMIN, PROBER = Role.TRAINER, Role.REVIEWER, Role.OWNER, Role.ADMIN, Role.PROBER

Poster = Annotated[Principal, Depends(Allowed(TRAINER, OWNER))]
Reader = Annotated[Principal, Depends(Allowed(REVIEWER, OWNER))]
Member = Annotated[Principal, Depends(Allowed(TRAINER, REVIEWER, OWNER))]
Owner = Annotated[Principal, Depends(Allowed(OWNER))]
OwnerOrAdmin = Annotated[Principal, Depends(Allowed(OWNER, ADMIN))]
StateKeeper = Annotated[Principal, Depends(Allowed(REVIEWER, OWNER, ADMIN))]
Admin = Annotated[Principal, Depends(Allowed(ADMIN))]
Anybody = Annotated[Principal, Depends(Allowed(TRAINER, REVIEWER, OWNER, ADMIN))]
Prober = Annotated[Principal, Depends(Allowed(PROBER))]
open_to_all = Depends(Open())


def project_of(who: Principal) -> int | None:
    """The project that bounds what this key sees; None for the installation's admin, who sees all."""
    return None if who.role is ADMIN else who.project
