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

from inspector import reading, salvage
from inspector.errors import BadSubmission, TooLarge
from inspector.settings import Limits
from inspector.showable import showable
from inspector.trajectory import Envelope, Reward, Step, Trajectory

SHOWN = 200  # characters of a refused value that the answer repeats


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
        envelope = _ENVELOPE.decode(line)
        _check_envelope(line, bytes(envelope.trajectory), limits.envelope_depth)
    except msgspec.ValidationError as error:
        raise _refusal(error, line) from error
    except msgspec.DecodeError as error:
        raise BadSubmission(f"not JSON: {error}", path="$") from error
    except RecursionError as error:
        raise BadSubmission("nested deeper than the decoder can read", path="$") from error
    return Admitted(envelope, hashlib.sha256(line).digest(), line)


def read(line: bytes, key: str = "") -> Trajectory:
    """Decode a line that `admit` let through, for all checks at once. Never raises: what cannot be read is a defect."""
    return reading.read(line, key)


def content_hash(trajectory: Trajectory) -> bytes:
    """16 bytes that are equal for the same steps under other ids and times: sources, words, actions and what came back, in order."""
    said = [_said(step) for step in trajectory.steps]
    try:
        packed = _PACK.encode(said)
    except OverflowError:  # an integer above 64 bits among the arguments
        packed = msgspec.json.encode(said)
    return hashlib.sha256(packed).digest()[:16]  # twice as fast as blake2b wherever the processor has SHA instructions


_ENVELOPE = msgspec.json.Decoder(Envelope)
_PACK = msgspec.msgpack.Encoder()


def _said(step: Step) -> tuple[Any, ...]:
    calls, observation = step.tool_calls, step.observation
    return (
        step.source,
        step.message,
        step.reasoning_content,
        [(call.function_name, call.arguments) for call in calls] if calls else None,
        [result.content for result in observation.results] if observation else None,
    )


# --- what msgspec lets pass in an envelope -----------------------------------------------------------------------------


def _check_encoding(line: bytes) -> None:
    if line.startswith(b"\xef\xbb\xbf"):
        raise BadSubmission("starts with a byte order mark, which JSON does not allow", path="$")
    try:
        line.decode()  # a Raw document is not checked by the decoder, and could never be read again
    except UnicodeDecodeError as error:
        raise BadSubmission(f"not UTF-8: byte 0x{line[error.start]:02x} at offset {error.start}", path="$") from error


class _Twice(ValueError):
    """A key stands twice in one object."""


class _Unbounded(ValueError):
    """A number that no float can hold."""


_DOCUMENT = object()  # stands in the parsed envelope where the document was cut out
_KEY = re.compile(rb'"trajectory"[ \t\n\r]*:[ \t\n\r]*')
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]|:[ \t\n\r]*')
FLOAT_DIGITS = 308  # an integer with more digits is beyond every float


def _check_envelope(line: bytes, document: bytes, deepest: int) -> None:
    """No key twice, finite numbers, depth: what typed decoding does not see, unknown fields and `extra` included."""
    if not document.startswith(b"{"):
        raise BadSubmission(f"expected an object, got {_shown(document.decode())}", path="$.trajectory")
    rest, envelope = _without_document(line, document)
    if rest.count("{") + rest.count("[") > deepest and salvage.deeper_than(envelope, deepest):
        raise BadSubmission(f"the envelope is nested deeper than {deepest}", path="$")


def _without_document(line: bytes, document: bytes) -> tuple[str, dict[str, Any]]:
    """The text of the envelope with a constant in the place of its document, and the same parsed.

    The document's text may occur elsewhere, even across string borders. A candidate is right if and only if the constant,
    which valid JSON cannot contain, comes out as the value of the outermost `trajectory`: up to there both texts are the same.
    """
    usual = _KEY.search(line)
    if usual and line.startswith(document, usual.end()):
        rest, envelope = _parsed_around(line, usual.end(), len(document))
        if envelope is not None and envelope.get("trajectory") is _DOCUMENT:
            return rest, envelope
    at = _value_of_trajectory(line)
    if not line.startswith(document, at):  # the decoder takes the last of two
        raise BadSubmission("the key 'trajectory' stands twice", path="$.trajectory")
    rest, envelope = _parsed_around(line, at, len(document), sure=True)
    assert envelope is not None
    return rest, envelope


def _parsed_around(line: bytes, at: int, length: int, *, sure: bool = False) -> tuple[str, dict[str, Any] | None]:
    rest = (line[:at] + b"NaN" + line[at + length :]).decode()
    try:
        return rest, _PLAIN.decode(rest)
    except (_Twice, _Unbounded) as error:
        if sure or _cut_is_right(rest):
            raise _located(error, rest) from error
    except (json.JSONDecodeError, RecursionError):  # of a document that a wrong cut left in
        if sure:
            raise
    return rest, None


def _value_of_trajectory(line: bytes) -> int:
    """Where the value of the first outermost `trajectory` begins, however its key is escaped."""
    depth, key = 0, b""
    for token in _TOKEN.finditer(line):
        kind = line[token.start()]
        if kind in b"{[":
            depth += 1
        elif kind in b"}]":
            depth -= 1
        elif kind == ord('"'):
            key = token.group()
        elif depth == 1 and json.loads(key) == "trajectory":
            return token.end()
    raise AssertionError("the decoder found a trajectory in this line")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _Twice
    return made


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0.0:
        raise _Unbounded(text)
    return number


def _whole(text: str) -> int:
    if len(text) > FLOAT_DIGITS:
        raise _Unbounded(text)
    return int(text)


def _document(constant: str) -> object:
    return _DOCUMENT


_PLAIN = json.JSONDecoder(object_pairs_hook=_object, parse_float=_finite, parse_int=_whole, parse_constant=_document)


# --- naming what was refused -------------------------------------------------------------------------------------------


class _Pairs(list[tuple[str, Any]]):
    """An object with all its keys, in order."""


def _unbounded_or(kind: type) -> Any:
    def keep(text: str) -> Any:
        number = float(text)
        return _Unbounded(text) if number - number != 0.0 or (kind is int and len(text) > FLOAT_DIGITS) else number

    return keep


_WITH_PAIRS = json.JSONDecoder(object_pairs_hook=_Pairs, parse_float=_unbounded_or(float), parse_int=_unbounded_or(int), parse_constant=_document)


def _cut_is_right(rest: str) -> bool:
    try:
        top = _WITH_PAIRS.decode(rest)
    except (json.JSONDecodeError, RecursionError):
        return False
    return isinstance(top, _Pairs) and any(key == "trajectory" and value is _DOCUMENT for key, value in top)


def _located(error: Exception, text: str, path: str = "$") -> BadSubmission:
    """The first key that stands twice, or the first number out of range, with its path."""
    waiting: list[tuple[str, Any]] = [(path, _WITH_PAIRS.decode(text))]
    while waiting:
        where, value = waiting.pop()
        if isinstance(value, _Unbounded):
            return BadSubmission(f"expected a finite number, got {_shown(str(value))}", path=where)
        if isinstance(value, _Pairs):
            if twice := _first_repeated([key for key, _ in value]):
                return BadSubmission(f"the key '{twice}' stands twice", path=f"{where}.{twice}")
            waiting += [(f"{where}.{_shown(key)}", inner) for key, inner in reversed(value)]
        elif isinstance(value, list):
            waiting += [(f"{where}[{at}]", inner) for at, inner in reversed(list(enumerate(value)))]
    return BadSubmission(str(error), path=path)


def _first_repeated(keys: list[str]) -> str | None:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            return _shown(key) or "''"
        seen.add(key)
    return None


_AT = re.compile(r"(?s)(.*) - at (`key` in )?`(\$.*)`\Z")
_PATH = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|(\[\.\.\.\])")
_MISSING = re.compile(r"Object missing required field `(\w+)`\Z")


def _refusal(error: msgspec.ValidationError, line: bytes) -> BadSubmission:
    """msgspec's message with the path set apart and the value added."""
    match = _AT.match(str(error))
    reason, in_key, path = match.groups() if match else (str(error), None, "$")
    if missing := _MISSING.match(reason):
        return BadSubmission("required, and missing", path=f"{path}.{missing[1]}")
    if reason.endswith("out of range") and (name := _PATH.match(path, 1)):
        field = bytes(msgspec.json.decode(line, type=dict[str, msgspec.Raw])[name[1]])
        return _located(error, field.decode(), f"$.{name[1]}")
    if "matching regex" in reason:
        reason = "Expected no control characters" if "x7f" in reason else "Expected a sha256 in hexadecimal"
    found = _value_at(line, path, bool(in_key))
    if found is None:
        return BadSubmission(reason, path=path)
    where, value = found
    return BadSubmission(f"{reason}: got {_shown(_text(value))}", path=where)


def _value_at(line: bytes, path: str, in_key: bool) -> tuple[str, Any] | None:
    """(path with its keys written out, value) of what the decoder refused; None where it cannot be read on its own."""
    where: str = "$"
    value: Any = None
    try:
        for depth, (name, index, any_key) in enumerate(_PATH.findall(path)):
            if depth == 0:
                value = msgspec.json.decode(msgspec.json.decode(line, type=dict[str, msgspec.Raw])[name])
                where = f"$.{name}"
            elif any_key or in_key:
                name = _refused_component(value)
                where, value = f"{where}.{_shown(name)}", value[name]
            else:
                where, value = where + (f".{name}" if name else f"[{index}]"), value[name or int(index)]
    except (msgspec.DecodeError, RecursionError, LookupError, TypeError):
        return None
    if in_key and isinstance(value, dict):
        name = _refused_component(value)
        return f"{where}.{_shown(name)}", name
    return (where, value) if where != "$" else None


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


def _shown(text: str) -> str:
    return showable(text, limit=SHOWN)
