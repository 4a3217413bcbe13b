"""Opaque cursors of keyset lists: where a page ended, as text that callers only hand back."""

from __future__ import annotations

import base64
import binascii
from typing import TypeVar

import msgspec

from inspector.errors import BadSubmission
from inspector.showable import showable

T = TypeVar("T")
LONGEST = 1000  # characters


def encode(position: object) -> str:
    """A position as a cursor."""
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).decode().rstrip("=")


def decode(cursor: str, kind: type[T]) -> T:
    """The position that a cursor stands for; raises BadSubmission for what was not made by `encode`."""
    try:
        raw = base64.b64decode(cursor[:LONGEST] + "=" * (-len(cursor) % 4), b"-_", validate=True)
        return msgspec.json.decode(raw, type=kind)
    except (binascii.Error, msgspec.DecodeError, ValueError) as error:
        raise BadSubmission(f"{showable(cursor, limit=100)!r} is not a cursor that this list gave", path="after") from error
