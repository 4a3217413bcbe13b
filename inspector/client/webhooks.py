"""Reads what the service posts to a webhook's address, and trusts it only with its signature (Standard Webhooks 1.0).

event = verify(body, headers, "whsec_…")  # raises BadSignature; `body` as bytes, as it came

Deliveries come in order and at least once: whoever acts on one remembers `event.id`, which stays the same when it comes again.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from inspector.errors import InspectorError

PREFIX = "whsec_"
VERSION = "v1"
TOLERANCE_S = 300.0


class BadSignature(InspectorError):
    """It is not from the service, or too old, or was changed on the way."""


class BadSecret(InspectorError, ValueError):
    """A text that is no secret of a webhook."""


class Event(NamedTuple):
    """What a verified post says."""

    id: str
    type: str  # as decision.set_state
    timestamp: datetime  # when it happened
    data: dict[str, Any]


class Message(msgspec.Struct, frozen=True):
    """The body."""

    type: str
    timestamp: datetime
    data: dict[str, Any]


def verify(body: bytes, headers: Mapping[str, str], secrets: str | Iterable[str], *, tolerance_s: float = TOLERANCE_S, now: float | None = None) -> Event:
    """The event, where one of the secrets signed it within `tolerance_s` seconds of now. Raises BadSignature."""
    given = {name.lower(): value for name, value in headers.items()}
    missing = [name for name in ("webhook-id", "webhook-timestamp", "webhook-signature") if not given.get(name)]
    if missing:
        raise BadSignature(f"no header {missing[0]}")
    id_, stamp = given["webhook-id"], _seconds(given["webhook-timestamp"])
    if abs((time.time() if now is None else now) - stamp) > tolerance_s:
        raise BadSignature(f"sent at {stamp}, which is more than {tolerance_s:g} s from now")
    right = sign([secrets] if isinstance(secrets, str) else secrets, id_, stamp, body).split(" ")
    found = given["webhook-signature"].split(" ")
    if not any([hmac.compare_digest(one.encode(), other.encode()) for one in right for other in found]):  # noqa: C419 -- each is compared, whichever is right
        raise BadSignature("no signature is right")
    try:
        message = msgspec.json.decode(body, type=Message)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadSignature(f"the body is no message: {error}") from error
    return Event(id_, message.type, message.timestamp, message.data)


def sign(secrets: Iterable[str], id: str, timestamp: int, body: bytes) -> str:
    """The header `webhook-signature`: one signature for each secret, with spaces between."""
    signed = b"%s.%d.%s" % (id.encode(), timestamp, body)
    return " ".join(f"{VERSION},{base64.b64encode(hmac.digest(_key(secret), signed, hashlib.sha256)).decode()}" for secret in secrets)


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(PREFIX) or not key:
        raise BadSecret(f"a secret of a webhook begins with {PREFIX!r}, and the rest is base64")
    return key


def _seconds(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise BadSignature("webhook-timestamp is no count of seconds")
    return int(text)
