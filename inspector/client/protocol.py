"""Reads the service's answers: what became of a body, and what is to be done with it. No input or output here."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

import msgspec

from inspector.client.advice import Ruling
from inspector.client.breaker import retry_after_s

NDJSON = "application/x-ndjson"
POISON_AFTER = 20  # answers 500 to one and the same body, after which the body and not the service is at fault


class Reply(NamedTuple):
    """A whole HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """The answer for one posted line."""

    line: int
    status: str  # created | duplicate | conflict | rejected
    id: str | None = None
    key: str | None = None
    reason: str | None = None
    path: str | None = None
    mode: str | None = None
    decision: Ruling | None = None


class Lookup(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a lookup of decisions by the producer's ids."""

    epoch: str | int = ""
    seq: int = 0
    decisions: dict[str, Ruling | None] = {}
    unknown: list[str] = []


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the feed; entries stay raw, so that one that is not understood costs only itself."""

    epoch: str | int
    seq: int
    decisions: list[msgspec.Raw] = []
    more: bool = False


class SnapshotPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the standing state at one (epoch, seq)."""

    epoch: str | int
    seq: int
    states: list[msgspec.Raw] = []
    decisions: list[msgspec.Raw] = []
    next: str | int | None = None


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What an error answer says."""

    reason: str = ""
    path: str | None = None


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """The body of an error answer."""

    error: Fault


class Fate(Enum):
    """What is to be done with a body after its answer."""

    TAKEN = "taken"  # every line has its receipt
    LATER = "later"  # the service is away, busy or does not know us: the same body again
    SPLIT = "split"  # the body is at fault: by halves, down to the line that is
    DEAD = "dead"  # nothing of the body will ever be taken


class Outcome(NamedTuple):
    """The fate of a body, with what it rests on."""

    fate: Fate
    receipts: tuple[Receipt, ...] = ()
    reason: str = ""
    path: str | None = None
    pause_s: float | None = None


KEY_PAUSE_S = 30.0  # a wrong key or address is not the body's fault, and will not mend itself in milliseconds
OURS_OR_OPERATORS = {401, 403, 404, 405, 407}
BODY_AT_FAULT = {400, 413, 422}
AGAIN = {408, 425, 429}

_receipts = msgspec.json.Decoder(Receipt)
_refusal = msgspec.json.Decoder(Refusal)


def outcome(reply: Reply, lines: int, *, attempts: int = 1) -> Outcome:
    """What a reply to a body of `lines` lines means; `attempts` counts the tries of this body that were answered 500."""
    if reply.status == 200:
        return _taken(reply, lines)
    fault = refusal(reply)
    reason = f"{reply.status}: {fault.reason}"
    fate = _fate(reply.status, lines, attempts)
    pause = retry_after_s(reply.headers) if fate is Fate.LATER else None
    if pause is None and reply.status in OURS_OR_OPERATORS:
        pause = KEY_PAUSE_S
    return Outcome(fate, (), reason, fault.path, pause)


def refusal(reply: Reply) -> Fault:
    """The reason of an error answer, ours or a proxy's."""
    try:
        return _refusal.decode(reply.body).error
    except msgspec.DecodeError:
        return Fault(reason=reply.body[:200].decode("utf-8", "replace"))


def _fate(status: int, lines: int, attempts: int) -> Fate:
    if status in AGAIN or status in OURS_OR_OPERATORS or 300 <= status < 400:
        return Fate.LATER
    if status >= 500 and (status != 500 or attempts < POISON_AFTER):
        return Fate.LATER
    if status in BODY_AT_FAULT or status >= 500:
        return Fate.SPLIT if lines > 1 else Fate.DEAD
    return Fate.DEAD


def _taken(reply: Reply, lines: int) -> Outcome:
    try:
        receipts = tuple(sorted(_receipts.decode_lines(reply.body), key=lambda receipt: receipt.line))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return Outcome(Fate.LATER, reason=f"an answer that is not ours: {error}")
    if [receipt.line for receipt in receipts] != list(range(lines)):
        return Outcome(Fate.LATER, reason=f"{len(receipts)} receipts for {lines} lines")
    return Outcome(Fate.TAKEN, receipts)


class Head(NamedTuple):
    """How far the feed was when an answer was given."""

    epoch: str
    seq: int


def head(headers: Mapping[str, str]) -> Head | None:
    """The feed's head in an answer's headers."""
    epoch, seq = headers.get("inspector-epoch", ""), headers.get("inspector-seq", "")
    return Head(epoch, int(seq)) if epoch and seq.isascii() and seq.isdigit() and len(seq) < 19 else None
