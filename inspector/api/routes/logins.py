"""Signing in to the dashboard: a key offers an address that works once, and the dashboard exchanges it for a session."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from inspector.api.access import StateKeeper, open_to_all
from inspector.api.answers import answer
from inspector.api.openapi import documented
from inspector.api.reading import JsonBody
from inspector.api.sessions import ServiceDep, SessionDep
from inspector.api.wire import ExchangeRequest, LoginAnswer, SessionAnswer
from inspector.store import projects

router = APIRouter()
OFFER = timedelta(minutes=10)
SESSION = timedelta(hours=12)


@router.post("/v1/logins", **documented(LoginAnswer, 201))
def offer_login(session: SessionDep, service: ServiceDep, who: StateKeeper) -> Response:
    """An address that opens the dashboard once, with this key's authority."""
    expires_at = datetime.now(UTC) + OFFER
    token = projects.offer_login(session, who.key, expires_at)
    address = f"http://{service.settings.host}:{service.settings.dashboard_port}/login?token={token}"
    return answer(LoginAnswer(token=token, address=address, expires_at=expires_at), 201)


@router.post("/v1/logins/exchange", dependencies=[open_to_all], **documented(SessionAnswer, 201, 401))
def exchange_login(session: SessionDep, asked: Annotated[ExchangeRequest, Depends(JsonBody(ExchangeRequest))]) -> Response:
    """Use up the token for a session, which ends after 12 hours, or with the key that offered the login."""
    expires_at = datetime.now(UTC) + SESSION
    secret, holder = projects.take_login(session, asked.token, expires_at)
    return answer(SessionAnswer(key=secret, name=holder.name, role=holder.role, project=holder.project_name, expires_at=expires_at), 201)


@router.delete("/v1/logins/session", **documented(None, 204))
def end_session(session: SessionDep, who: StateKeeper, request: Request) -> Response:
    """Sign out: the session that this call is made with ends; a key is not touched."""
    projects.end_session(session, request.headers["authorization"].partition(" ")[2].strip())
    return Response(None, 204)
