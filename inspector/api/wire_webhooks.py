"""What requests and answers about webhooks look like."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec

from inspector.api.wire import Note, Request
from inspector.verdict import Action, Scope


class WebhookRequest(Request, frozen=True, kw_only=True):
    """Where decisions are to be posted. Without `scopes` or `actions` all are."""

    url: Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]
    note: Note = ""
    scopes: Annotated[list[Scope], msgspec.Meta(min_length=1)] | None = None
    actions: Annotated[list[Action], msgspec.Meta(min_length=1)] | None = None


class WebhookLine(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook without its secret."""

    id: UUID
    url: str
    note: str
    scopes: list[Scope] | None
    actions: list[Action] | None
    epoch: UUID
    seq: int  # what was delivered, or is not wanted, ends here
    failures: int  # attempts in a row
    due_at: datetime  # of the next attempt, where some failed
    disabled_at: datetime | None
    why: str  # it is disabled
    former_until: datetime | None  # the secret before signs until then
    created_at: datetime


class WebhookList(msgspec.Struct, frozen=True, kw_only=True):
    """All of a project."""

    webhooks: list[WebhookLine]


class NewWebhookAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The only time that the secret is shown."""

    secret: str
    webhook: WebhookLine


class RotateRequest(Request, frozen=True, kw_only=True):
    """For how long the secret before signs too."""

    overlap_hours: Annotated[float, msgspec.Meta(ge=0, le=24 * 30)] = 24.0


class RedeliverRequest(Request, frozen=True, kw_only=True):
    """From which decision on; what comes after `after` is posted again, and a disabled webhook is enabled."""

    after: Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class AttemptLine(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one post."""

    id: int
    message: str
    seq: int | None  # none for what tells of no decision
    status: int | None  # none where no whole answer came
    ms: int
    said: str  # the beginning of the answer, or why there is none
    attempted_at: datetime


class AttemptPage(msgspec.Struct, frozen=True, kw_only=True):
    """Newest first."""

    attempts: list[AttemptLine]
    next: str | None
