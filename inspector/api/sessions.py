"""The database session of one request: committed before the answer leaves, or the answer is an error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends, Request
from sqlmodel import Session

from inspector.api.service import Service
from inspector.store.session import transaction


async def service_of(request: Request) -> Service:  # async, or each request would go through a thread for it
    """What this process holds."""
    service: Service = request.app.state.service
    return service


ServiceDep = Annotated[Service, Depends(service_of)]


def _session(service: ServiceDep) -> Iterator[Session]:
    with transaction(service.engine) as session:
        yield session


# scope="function": with the default, the answer would leave before the commit, and say yes to what then fails
SessionDep = Annotated[Session, Depends(_session, scope="function")]
