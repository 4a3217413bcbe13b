"""Reads the small JSON bodies of the control routes into structs, strictly."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from fastapi import Request

from inspector.api.answers import JSON, SHOWN, TooSlow
from inspector.errors import BadSubmission, TooLarge, UnknownEncoding
from inspector.settings import Limits
from inspector.showable import showable

BODY_S = 60.0  # for a whole body to arrive
SMALL, LARGE = 1 << 20, 16 << 20  # bytes


class JsonBody:
    """A dependency that reads a body of one kind; unknown fields are refused. Stands among the dependencies for the OpenAPI page."""

    def __init__(self, kind: type[msgspec.Struct], limit: int = SMALL) -> None:
        self.kind = kind
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind)
        self._limit = limit

    async def __call__(self, request: Request) -> Any:
        """The struct; raises BadSubmission, TooLarge, UnknownEncoding, TooSlow."""
        if media_type(request) not in (JSON, ""):
            raise UnknownEncoding(f"Content-Type {media_type(request)[:80]!r}: this route reads {JSON}")
        try:
            return self._decoder.decode(body := await self._read(request, self.limit(request)))
        except msgspec.ValidationError as error:
            raise _refusal(error, body) from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadSubmission(f"not JSON: {error}", path="$") from error
        except RecursionError as error:
            raise BadSubmission("nested deeper than can be read", path="$") from error

    def limit(self, request: Request) -> int:
        """Bytes that a body may have."""
        return self._limit

    async def _read(self, request: Request, limit: int) -> bytes:
        if request.headers.get("content-encoding", "identity") != "identity":
            raise UnknownEncoding("this route reads no compressed bodies")
        body = bytearray()
        async with in_time():
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise TooLarge(f"a body of more than {limit} bytes")
        return bytes(body)


class EnvelopeBody(JsonBody):
    """A body that becomes a part of an envelope, and may be no larger than one."""

    def limit(self, request: Request) -> int:
        """As the door's."""
        limits: Limits = request.app.state.service.settings.limits
        return limits.envelope_bytes


_FIELD = re.compile(r"Object (?:missing required|contains unknown) field `(.*)`")
_PART = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")


def _refusal(error: msgspec.ValidationError, body: bytes) -> BadSubmission:
    """msgspec's message with the path set apart and, where there is one, the value added."""
    reason, _, place = str(error).partition(" - at ")
    path = place.strip("`") or "$"
    if field := _FIELD.match(reason):
        return BadSubmission(reason, path=f"{path}.{showable(field[1], limit=SHOWN)}")
    try:
        value = msgspec.json.decode(body)
        for name, index in _PART.findall(path):
            value = value[name or int(index)]
    except (LookupError, TypeError, ValueError, RecursionError):  # a path with a wildcard, or what comes after the value is broken too
        return BadSubmission(reason, path=path)
    return BadSubmission(f"{reason}: got {showable(msgspec.json.encode(value).decode(), limit=SHOWN)}", path=path)


def media_type(request: Request) -> str:
    """The Content-Type without its parameters, in small letters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


@asynccontextmanager
async def in_time(seconds: float = BODY_S) -> AsyncIterator[None]:
    """For the time in which a body is read; raises TooSlow when it is over."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise TooSlow(f"the body did not come within {seconds:g} s") from error


__all__ = ["LARGE", "SMALL", "EnvelopeBody", "JsonBody", "in_time", "media_type"]
