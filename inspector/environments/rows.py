"""Reads a data set of JSON rows, bounded: JSONL or one JSON list, plain or gzip."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from inspector.environments.protocol import Unreadable
from inspector.environments.trees import read_file

DATA_BYTES = 256 << 20
ROWS = 200_000


@dataclass(frozen=True, slots=True)
class Row:
    """One row, with where it stands."""

    place: str  # file and line, for people
    value: Mapping[str, Any]

    def text(self, name: str, default: str | None = None) -> str:
        """A field that must be a string. Raises Unreadable where it is missing without a default, or something else."""
        value = self.value.get(name, default)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise Unreadable(f"{self.place}: {name} is {_shown(value)}, not a string")
        return value

    def texts(self, name: str) -> list[str]:
        """A field that must be a list of strings. Raises Unreadable."""
        value = self.value.get(name)
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise Unreadable(f"{self.place}: {name} is {_shown(value)}, not a list of strings")
        return value


def _shown(value: object) -> str:
    return "missing" if value is None else repr(value)[:80]


def read_rows(path: Path) -> Sequence[Row]:
    """All rows, in order. Raises Unreadable naming the line."""
    real = path.resolve()  # the user's own word may be a link
    data = _inflated(path, read_file(real.parent, real.name, DATA_BYTES))
    values = _listed(path, data) if data.lstrip()[:1] == b"[" else _lined(path, data)
    if not values:
        raise Unreadable(f"{path.name}: no rows")
    for row in values:
        if not isinstance(row.value, dict):
            raise Unreadable(f"{row.place}: {_shown(row.value)} is not an object")
    return values


def _inflated(path: Path, data: bytes) -> bytes:
    if not data.startswith(b"\x1f\x8b"):
        return data.removeprefix(b"\xef\xbb\xbf")
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            whole = file.read(DATA_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise Unreadable(f"{path.name}: no whole gzip file: {error}") from error
    if len(whole) > DATA_BYTES:
        raise Unreadable(f"{path.name}: inflates to more than {DATA_BYTES} bytes")
    return whole


def _lined(path: Path, data: bytes) -> list[Row]:
    lines = [(number, line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip()]
    if len(lines) > ROWS:
        raise Unreadable(f"{path.name}: more than {ROWS} rows")
    return [Row(place := f"{path.name}:{number}", _decoded(place, line)) for number, line in lines]


def _listed(path: Path, data: bytes) -> list[Row]:
    values = _decoded(path.name, data)
    if len(values) > ROWS:
        raise Unreadable(f"{path.name}: more than {ROWS} rows")
    return [Row(f"{path.name}[{index}]", value) for index, value in enumerate(values)]


def _decoded(place: str, data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(f"{place}: {str(error)[:200]}") from error


def unique(ids: Sequence[str]) -> list[str]:
    """The same ids, with `#2` and so on behind those that came before."""
    seen: dict[str, int] = {}
    names = []
    for each in ids:
        seen[each] = seen.get(each, 0) + 1
        names.append(each if seen[each] == 1 else f"{each}#{seen[each]}")
    return names
