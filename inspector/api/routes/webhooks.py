"""Webhooks of a project: where its decisions are posted, and what became of it."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Response
from sqlmodel import Session

from inspector.api import cursors
from inspector.api.access import Owner
from inspector.api.answers import answer
from inspector.api.openapi import documented
from inspector.api.parameters import After, Limit
from inspector.api.reading import JsonBody
from inspector.api.service import Service
from inspector.api.sessions import ServiceDep, SessionDep
from inspector.api.wire_webhooks import (
    AttemptLine,
    AttemptPage,
    NewWebhookAnswer,
    RedeliverRequest,
    RotateRequest,
    WebhookLine,
    WebhookList,
    WebhookRequest,
)
from inspector.egress import Egress, Refused
from inspector.errors import BadSubmission, Conflict
from inspector.store import decisions, webhooks
from inspector.store.webhooks import Webhook
from inspector.webhooks.signing import secret

router = APIRouter()


@router.post("/v1/webhooks", **documented(NewWebhookAnswer, 201, 409))
def create_webhook(session: SessionDep, service: ServiceDep, who: Owner, wanted: Annotated[WebhookRequest, Depends(JsonBody(WebhookRequest))]) -> Response:
    """Have decisions posted somewhere from now on; the secret is shown in this answer and never again."""
    key = _operators_key(service)
    try:
        Egress.of(service.settings).admit(wanted.url)
    except Refused as error:
        raise BadSubmission(str(error), path="$.url") from error
    id_ = webhooks.add(session, who.project, wanted.url, wanted.note, wanted.scopes, wanted.actions)
    return answer(_shown(session, who.project, id_, key), 201)


@router.get("/v1/webhooks", **documented(WebhookList))
def list_webhooks(session: SessionDep, who: Owner) -> Response:
    """All of the project, disabled ones included."""
    return answer(WebhookList(webhooks=[_line(each) for each in webhooks.listing(session, who.project)]))


@router.get("/v1/webhooks/{id}", **documented(WebhookLine, 404))
def read_webhook(session: SessionDep, who: Owner, id: UUID) -> Response:
    """How far it has heard, and whether it is disabled."""
    return answer(_line(webhooks.find(session, who.project, id)))


@router.get("/v1/webhooks/{id}/attempts", **documented(AttemptPage, 404))
def list_attempts(session: SessionDep, who: Owner, id: UUID, after: After = None, limit: Limit = 50) -> Response:
    """What was posted there, newest first; of each webhook the newest thousand are kept."""
    webhooks.find(session, who.project, id)
    found = webhooks.attempts(session, id, cursors.decode(after, int) if after else None, limit)
    lines = [AttemptLine(**each._asdict()) for each in found]
    return answer(AttemptPage(attempts=lines, next=cursors.encode(found[-1].id) if len(found) == limit else None))


@router.delete("/v1/webhooks/{id}", **documented(None, 204, 404))
def delete_webhook(session: SessionDep, who: Owner, id: UUID) -> Response:
    """Post nothing there any more, and forget what was."""
    webhooks.delete(session, who.project, id)
    return Response(None, 204)


@router.post("/v1/webhooks/{id}/rotate", **documented(NewWebhookAnswer, 404, 409))
def rotate_secret(
    session: SessionDep, service: ServiceDep, who: Owner, id: UUID, wanted: Annotated[RotateRequest, Depends(JsonBody(RotateRequest))]
) -> Response:
    """A new secret; the one before signs beside it for a while."""
    key = _operators_key(service)
    webhooks.rotate(session, who.project, id, wanted.overlap_hours * 3600)
    return answer(_shown(session, who.project, id, key))


@router.post("/v1/webhooks/{id}/test", **documented(WebhookLine, 404))
def test_webhook(session: SessionDep, who: Owner, id: UUID) -> Response:
    """Post a message that tells of no decision, within seconds; its attempt says what came of it."""
    webhooks.ask_test(session, who.project, id)
    return answer(_line(webhooks.find(session, who.project, id)))


@router.post("/v1/webhooks/{id}/redeliver", **documented(WebhookLine, 404))
def redeliver(session: SessionDep, who: Owner, id: UUID, wanted: Annotated[RedeliverRequest, Depends(JsonBody(RedeliverRequest))]) -> Response:
    """Post again what comes after a decision, under the same ids; a disabled webhook is enabled."""
    head = decisions.head(session, who.project)
    if not head.first - 1 <= wanted.after <= head.seq:
        raise BadSubmission(f"the log goes from {head.first} to {head.seq}, and {wanted.after} is not before one of these", path="$.after")
    webhooks.rewind(session, who.project, id, wanted.after)
    return answer(_line(webhooks.find(session, who.project, id)))


def _operators_key(service: Service) -> str:
    if not service.settings.webhook_key:
        raise Conflict("this installation has no webhooks: its operator sets INSPECTOR_WEBHOOK_KEY")
    return service.settings.webhook_key


def _shown(session: Session, project: int, id_: UUID, operators_key: str) -> NewWebhookAnswer:
    found = webhooks.find(session, project, id_)
    return NewWebhookAnswer(secret=secret(operators_key, id_, found.generation), webhook=_line(found))


def _line(found: Webhook) -> WebhookLine:
    told = found._asdict()
    del told["generation"]
    return WebhookLine(**told)
