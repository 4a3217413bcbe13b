"""Reads JSON as Python writes it: NaN, Infinity and lone surrogates become what JSON can carry, and each is listed."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import msgspec

from inspector.showable import showable

_SURROGATE = re.compile("[\ud800-\udfff]")
_TOO_DEEP = "nested too deeply to be read"


class NotJson(ValueError):
    """The text is not JSON; `line` is where, counted from 1."""

    def __init__(self, reason: str, line: int = 1) -> None:
        self.reason = reason
        self.line = line
        super().__init__(reason)


def decode(raw: bytes) -> tuple[Any, list[str]]:
    """(value, what could not be carried). Raises NotJson."""
    try:
        return msgspec.json.decode(raw), []
    except (msgspec.DecodeError, RecursionError):
        return _decode_python(raw)


def _decode_python(raw: bytes) -> tuple[Any, list[str]]:
    lost: list[str] = []
    try:
        return _carried(json.loads(raw.decode("utf-8-sig")), "$", lost), lost
    except UnicodeDecodeError as error:
        raise NotJson(f"not UTF-8: byte 0x{raw[error.start]:02x} at offset {error.start}", raw.count(b"\n", 0, error.start) + 1) from error
    except json.JSONDecodeError as error:
        raise NotJson(f"not JSON: {error.msg} at column {error.colno}", error.lineno) from error
    except RecursionError as error:
        raise NotJson(_TOO_DEEP) from error
    except ValueError as error:  # an integer with more digits than Python reads
        raise NotJson(f"not readable: {error}") from error


def _carried(value: Any, path: str, lost: list[str]) -> Any:
    if isinstance(value, dict):
        return {_text(key, path, lost): _carried(item, member(path, key), lost) for key, item in value.items()}
    if isinstance(value, list):
        return [_carried(item, f"{path}[{at}]", lost) for at, item in enumerate(value)]
    if isinstance(value, str):
        return _text(value, path, lost)
    if isinstance(value, float) and not math.isfinite(value):
        lost.append(f"{path}: {value} is not a number that JSON can carry; null instead")
        return None
    return value


def _text(value: str, path: str, lost: list[str]) -> str:
    if not _SURROGATE.search(value):
        return value
    lost.append(f"{path}: half a character (a lone surrogate) is not text; U+FFFD instead")
    return _SURROGATE.sub("�", value)


def member(path: str, key: str) -> str:
    """The path of `key` below `path`."""
    return f"{path}.{showable(key, limit=80)}"


def text(value: Any) -> str:
    """`value` as JSON text, for what has no better place."""
    return msgspec.json.encode(value).decode()
