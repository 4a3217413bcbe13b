"""PATCH of a trajectory: the verifier's late word."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from starlette.background import BackgroundTask

from inspector.amend import Amendment, amend
from inspector.api.access import Poster
from inspector.api.answers import answer
from inspector.api.openapi import documented
from inspector.api.parameters import Key
from inspector.api.reading import EnvelopeBody
from inspector.api.sessions import ServiceDep, SessionDep
from inspector.api.wire import AmendAnswer

router = APIRouter()


@router.patch("/v1/trajectories/{key}", **documented(AmendAnswer, 404, 409))
def amend_trajectory(session: SessionDep, service: ServiceDep, who: Poster, key: Key, said: Annotated[Amendment, Depends(EnvelopeBody(Amendment))]) -> Response:
    """Add a reward, components, a verifier report or artifacts that were null; each once. It is audited again."""
    added = amend(session, service.reader, who.project, key, said, envelope_bytes=service.settings.limits.envelope_bytes)
    answered = answer(AmendAnswer(key=key, added=added))
    answered.background = BackgroundTask(service.doorbell.ring)  # after the commit, which comes before the answer leaves
    return answered
