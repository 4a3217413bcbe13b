"""What owners are told of the environment versions that they answer for."""

from __future__ import annotations

from datetime import datetime

import msgspec

from inspector.store.owner_notices import Notice


class NoticeLine(msgspec.Struct, frozen=True, kw_only=True):
    """One notice: what happened, on what evidence, how it ends, and one command that shows it."""

    id: int
    notice: Notice
    noticed_at: datetime


class NoticePage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of notices."""

    notices: list[NoticeLine]
    next: str | None
