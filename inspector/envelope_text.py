"""What typed decoding lets pass in an envelope: a key that stands twice, numbers that are not finite, depth."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from inspector import salvage
from inspector.errors import BadSubmission
from inspector.showable import showable

SHOWN = 200  # characters of a refused value that the answer repeats


class _Twice(ValueError):
    """A key stands twice in one object."""


class _Unbounded(ValueError):
    """A number that no float can hold."""


_DOCUMENT = object()  # stands in the parsed envelope where the document was cut out
_KEY = re.compile(rb'"trajectory"[ \t\n\r]*:[ \t\n\r]*')
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]|:[ \t\n\r]*')
_BRACE = ord("{")
_QUICK, _AGAIN, _WITHIN_64_BITS = msgspec.json.Decoder(), msgspec.json.Encoder(), msgspec.msgpack.Encoder()
FLOAT_DIGITS = 308  # an integer with more digits is beyond every float


def check(line: bytes, document: msgspec.Raw, deepest: int) -> None:
    """No key twice, finite numbers, depth: what typed decoding does not see, unknown fields and `extra` included."""
    if _plainly_right(line, memoryview(document), deepest):
        return
    text = bytes(document)
    if not text.startswith(b"{"):
        raise BadSubmission(f"expected an object, got {shown(text.decode())}", path="$.trajectory")
    rest, envelope = _without_document(line, text)
    if rest.count("{") + rest.count("[") > deepest and salvage.deeper_than(envelope, deepest):
        raise BadSubmission(f"the envelope is nested deeper than {deepest}", path="$")


def _plainly_right(line: bytes, document: memoryview, deepest: int) -> bool:
    """Whether a look that costs a tenth of the whole one is enough, as it is for almost every line.

    Without a backslash each quote delimits a text, and a key that stood twice would not come back when what was read is
    written again. A number that no float can hold is refused when it is read or packed. A zero in the place of the document is its
    outermost `trajectory` if and only if the cut was right, for that was an object.
    """
    usual = _KEY.search(line)
    if usual is None or document[0] != _BRACE or not line.startswith(document, usual.end()):
        return False
    rest = b"%b0%b" % (line[: usual.end()], line[usual.end() + len(document) :])
    if b"\\" in rest or rest.count(b"{") + rest.count(b"[") > deepest:
        return False
    try:
        envelope = _QUICK.decode(rest)
        _WITHIN_64_BITS.encode(envelope)
        again = _AGAIN.encode(envelope)
    except (msgspec.MsgspecError, OverflowError, RecursionError):  # the whole look names what is wrong
        return False
    return type(envelope) is dict and type(envelope.get("trajectory")) is int and again.count(b'"') == rest.count(b'"')


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
            raise located(error, rest) from error
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


def located(error: Exception, text: str, path: str = "$") -> BadSubmission:
    """The first key that stands twice, or the first number out of range, with its path."""
    waiting: list[tuple[str, Any]] = [(path, _WITH_PAIRS.decode(text))]
    while waiting:
        where, value = waiting.pop()
        if isinstance(value, _Unbounded):
            return BadSubmission(f"expected a finite number, got {shown(str(value))}", path=where)
        if isinstance(value, _Pairs):
            if twice := _first_repeated([key for key, _ in value]):
                return BadSubmission(f"the key '{twice}' stands twice", path=f"{where}.{twice}")
            waiting += [(f"{where}.{shown(key)}", inner) for key, inner in reversed(value)]
        elif isinstance(value, list):
            waiting += [(f"{where}[{at}]", inner) for at, inner in reversed(list(enumerate(value)))]
    return BadSubmission(str(error), path=path)


def _first_repeated(keys: list[str]) -> str | None:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            return shown(key) or "''"
        seen.add(key)
    return None


def shown(text: str) -> str:
    """Foreign text as a refusal repeats it."""
    return showable(text, limit=SHOWN)
