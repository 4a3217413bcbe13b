"""The two gates of a posted line: the door before it is acknowledged, and the worker's reading after it.

The door refuses what could not be stored or found again. What it lets through is never rejected any more: the worker
reads it as far as it can be read and reports the rest as defects of the record.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, NamedTuple

import msgspec

from inspector import envelope_text, reading
from inspector.envelope_text import located, shown
from inspector.errors import BadSubmission, TooLarge
from inspector.settings import Limits
from inspector.trajectory import Envelope, Reward, Trajectory


class Admitted(NamedTuple):
    """A line that may be acknowledged."""

    envelope: Envelope
    sha256: bytes
    line: bytes  # as sent, without the newline


def admit(line: bytes, limits: Limits) -> Admitted:
    """Read the envelope of one posted line and leave its document raw. Raises BadSubmission with the path and the value."""
    line = line.removesuffix(b"\n")
    if len(line) > limits.line_bytes:
        raise TooLarge(f"the line has {len(line)} bytes, the limit is {limits.line_bytes}", path="$")
    _check_encoding(line)
    try:
        if len(line) > limits.envelope_bytes:  # a short line needs no look
            _check_envelope_size(line, limits.envelope_bytes)
        envelope = _ENVELOPE.decode(line)
        envelope_text.check(line, envelope.trajectory, limits.envelope_depth)
    except msgspec.ValidationError as error:
        raise _refusal(error, line) from error
    except (msgspec.DecodeError, json.JSONDecodeError) as error:
        raise BadSubmission(f"not JSON: {error}", path="$") from error
    except RecursionError as error:
        raise BadSubmission("nested deeper than the decoder can read", path="$") from error
    return Admitted(envelope, hashlib.sha256(line).digest(), line)


def read(line: bytes, key: str = "") -> Trajectory:
    """Decode a line that `admit` let through, for all checks at once. Never raises: what cannot be read is a defect."""
    return reading.read(line, key)


_ENVELOPE = msgspec.json.Decoder(Envelope)


def _check_encoding(line: bytes) -> None:
    if line.startswith(b"\xef\xbb\xbf"):
        raise BadSubmission("starts with a byte order mark, which JSON does not allow", path="$")
    if line.isascii():
        return
    try:
        line.decode()  # a Raw document is not checked by the decoder, and could never be read again
    except UnicodeDecodeError as error:
        raise BadSubmission(f"not UTF-8: byte 0x{line[error.start]:02x} at offset {error.start}", path="$") from error


def _check_envelope_size(line: bytes, limit: int) -> None:
    """Before anything of it is decoded: millions of tiny values cost seconds and gigabytes, and nobody needs them here."""
    large = _LARGE.decode(line)
    tokens = bytes(large.tokens)
    arrays = _ARRAYS.decode(tokens) if tokens.startswith(b"{") else _Arrays()
    texts = [raw for raw in map(bytes, (arrays.ids, arrays.loss_mask, arrays.logprobs)) if raw.startswith(b'"')]
    size = len(line) - len(bytes(large.trajectory)) - sum(map(len, texts))
    if size > limit:
        raise BadSubmission(f"the envelope has {size} bytes beside its document and its token arrays, the limit is {limit}", path="$")


_NONE = msgspec.Raw(b"")


class _Large(msgspec.Struct, gc=False):
    """The parts of an envelope that may be large."""

    trajectory: msgspec.Raw = _NONE
    tokens: msgspec.Raw = _NONE


class _Arrays(msgspec.Struct, gc=False):
    """The parts of the tokens that may be large, each a single text."""

    ids: msgspec.Raw = _NONE
    loss_mask: msgspec.Raw = _NONE
    logprobs: msgspec.Raw = _NONE


_LARGE = msgspec.json.Decoder(_Large)
_ARRAYS = msgspec.json.Decoder(_Arrays)


# --- naming what was refused -------------------------------------------------------------------------------------------

_AT = re.compile(r"(?s)(.*) - at `(\$.*)`\Z")
_PATH = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|(\[\.\.\.\])")
_MISSING = re.compile(r"Object missing required field `(\w+)`\Z")


def _refusal(error: msgspec.ValidationError, line: bytes) -> BadSubmission:
    """msgspec's message with the path set apart and the value added."""
    match = _AT.match(str(error))
    reason, path = match.groups() if match else (str(error), "$")
    if missing := _MISSING.match(reason):
        return BadSubmission("required, and missing", path=f"{path}.{missing[1]}")
    if path == "$":
        return BadSubmission(reason, path=path)
    if reason.endswith("out of range"):
        return _out_of_range(error, line, path)
    if "matching regex" in reason:
        reason = "Expected no control characters" if "x7f" in reason else "Expected a sha256 in hexadecimal"
    found = _value_at(line, path)
    if found is None:
        return BadSubmission(reason, path=path)
    where, value = found
    return BadSubmission(f"{reason}: got {shown(_text(value))}", path=where)


def _out_of_range(error: msgspec.ValidationError, line: bytes, path: str) -> BadSubmission:
    field = _PATH.findall(path)[0][0]
    try:
        return located(error, _field(line, field).decode(), f"$.{field}")
    except (msgspec.DecodeError, RecursionError):  # what comes after the number is broken too
        return BadSubmission("expected a finite number", path=path)


def _field(line: bytes, name: str) -> bytes:
    """The text of one outermost field."""
    return bytes(msgspec.json.decode(line, type=dict[str, msgspec.Raw])[name])


def _value_at(line: bytes, path: str) -> tuple[str, Any] | None:
    """(path with its keys written out, value) of what the decoder refused; None where it cannot be read on its own."""
    (field, _, _), *below = _PATH.findall(path)
    where = f"$.{field}"
    try:
        value = msgspec.json.decode(_field(line, field))
        for name, index, any_key in below:
            if any_key:
                name = _refused_component(value)
            where, value = where + (f".{shown(name)}" if name else f"[{index}]"), value[name or int(index)]
    except (msgspec.DecodeError, RecursionError, LookupError, TypeError):
        return None
    return where, value


def _refused_component(rewards: dict[str, Any]) -> str:
    """The key of the first entry of `rewards`, the only map with typed values, that cannot be read."""
    for name, value in rewards.items():
        try:
            msgspec.convert({name: value}, dict[str, Reward | None])
        except msgspec.ValidationError:
            return name
    raise LookupError


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()
