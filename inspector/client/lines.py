"""Turns what a trainer hands over into posted lines, on our own thread."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from inspector.client import hooks
from inspector.client.advice import Asked
from inspector.trajectory import Posted, RunRef

Envelope = dict[str, Any]
Submitted = Envelope | Posted | bytes
Redact = Callable[[Envelope], Envelope]


class Unfit(Exception):
    """A trajectory that cannot be sent; the message says why."""


class Withheld(Unfit):
    """The redact hook failed, so nothing of it may leave."""


class Line(NamedTuple):
    """One line of a body, with what `decide` asks about it."""

    text: bytes
    asked: Asked
    run: str | None = None


class _Named(msgspec.Struct):
    id: str


class _Peek(msgspec.Struct):
    id: str
    group: _Named | None = None
    run: _Named | None = None


_peek = msgspec.json.Decoder(_Peek)
_envelope = msgspec.json.Decoder(dict[str, Any])


class LineMaker:
    """Fills in the run, redacts and encodes; the same input always gives the same bytes, so that posting twice is posting once."""

    def __init__(self, run: RunRef | None = None, redact: Redact | None = None) -> None:
        self._run = msgspec.to_builtins(run, builtin_types=()) if run else None
        self._typed_run, self._redact = run, redact
        self._encoder = msgspec.json.Encoder(enc_hook=_plain)

    def line(self, submitted: Submitted) -> Line:
        """One line without its newline. Raises Unfit, or Withheld when the redact hook raised or returned no dict."""
        text = self._text(submitted)
        if not text or b"\n" in text:
            raise Unfit("an empty line" if not text else "a line with a newline in it")
        return line_of(text)

    def _text(self, submitted: Submitted) -> bytes:
        if isinstance(submitted, bytes | bytearray | memoryview) and self._redact is None:
            return bytes(submitted).strip()
        if isinstance(submitted, Posted) and self._redact is None:
            return self._encode(self._with_run(submitted))
        return self._encode(self._redacted(self._filled(_as_dict(submitted))))

    def _with_run(self, posted: Posted) -> Posted:
        return msgspec.structs.replace(posted, run=self._typed_run) if posted.run is None and self._typed_run else posted

    def _filled(self, envelope: Envelope) -> Envelope:
        reward = envelope.get("reward")
        if isinstance(reward, float) and not math.isfinite(reward):
            raise Unfit(f"$.reward: {reward} is no number; say None for a reward that was not scored")
        return {**envelope, "run": self._run} if self._run and envelope.get("run") is None else envelope

    def _redacted(self, envelope: Envelope) -> Envelope:
        if self._redact is None:
            return envelope
        try:
            redacted = hooks.call(self._redact, envelope)
        except hooks.HookFailed as error:
            raise Withheld(f"redact: {error}") from error
        if not isinstance(redacted, dict):
            raise Withheld(f"redact returned {type(redacted).__name__}, not a dict")
        return redacted

    def _encode(self, envelope: Envelope | Posted) -> bytes:
        try:
            return hooks.call(self._encoder.encode, envelope)
        except hooks.HookFailed as error:
            raise Unfit(f"cannot be written as JSON: {error}") from error


def line_of(text: bytes) -> Line:
    """A line with its id, group and run; Unfit when it is no envelope at all."""
    try:
        peek = _peek.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Unfit(str(error)[:300]) from error
    return Line(text, Asked(id=peek.id, group=peek.group.id if peek.group else None), peek.run.id if peek.run else None)


def named(submitted: Submitted) -> Asked:
    """As much of the id and the group as can be told of something that could not become a line."""
    if isinstance(submitted, Posted):
        return Asked(id=submitted.id, group=submitted.group.id if submitted.group else None)
    if not isinstance(submitted, Mapping):
        return Asked(id="")
    group = submitted.get("group")
    group_id = group.get("id") if isinstance(group, Mapping) else None
    return Asked(id=str(submitted.get("id", "")), group=str(group_id) if group_id is not None else None)


def _as_dict(submitted: Submitted) -> Envelope:
    if isinstance(submitted, Mapping):
        return dict(submitted)
    if isinstance(submitted, Posted):
        return dict(msgspec.to_builtins(submitted))
    try:
        return _envelope.decode(submitted)
    except (msgspec.DecodeError, RecursionError, TypeError) as error:
        raise Unfit(str(error)[:300]) from error


def _plain(value: Any) -> Any:
    """Scalars and arrays of numpy and torch, without importing either."""
    if callable(convert := getattr(value, "tolist", None)):
        return convert()
    raise NotImplementedError(f"{type(value).__name__} has no form in JSON")
