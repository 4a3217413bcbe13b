"""Our own envelopes, as JSON Lines or one document: passed on byte for byte where the door would take them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from inspector.errors import BadSubmission
from inspector.formats._draft import Asked, Draft, Imported, envelope_fields
from inspector.formats._files import Kind, Peek, Refused, Row, rows
from inspector.gates import admit
from inspector.settings import Limits

NAME = "native"
VERSION = 1
_LIMITS = Limits()
_MENDED = frozenset({"id", "environment", "task", "reward", "trajectory", "extra"})


def looks_like(peek: Peek) -> float:
    """An object whose `trajectory` is a document with steps."""
    inner = peek.first.get("trajectory")
    return 1.0 if peek.kind is Kind.ROWS and isinstance(inner, dict) and isinstance(inner.get("steps"), list) else 0.0


def convert(path: Path, asked: Asked) -> Iterator[Draft | Imported | Refused]:
    """Lines as they are; a line that Python wrote with NaN in it, or without its environment, is mended and says so."""
    for row in rows(path):
        yield row if isinstance(row, Refused) else _passed_on(row)


def _passed_on(row: Row) -> Draft | Imported | Refused:
    try:
        line = msgspec.json.format(row.raw, indent=-1) if b"\n" in row.raw else row.raw
        admit(line, _LIMITS)
    except (BadSubmission, msgspec.DecodeError, RecursionError) as error:
        incomplete = isinstance(row.value, dict) and not {"id", "environment", "task", "reward"} <= set(row.value)
        return _mended(row) if row.lost or incomplete else Refused(row.source, str(error))
    return Imported(line, row.source)


def _mended(row: Row) -> Draft | Refused:
    value: dict[str, Any] = row.value
    if not isinstance(value.get("trajectory"), dict):
        return Refused(row.source, "has no object `trajectory`")
    draft = Draft.of(row)
    for name in ("id", "environment", "task", "reward"):
        if name not in value:
            draft.lose(f"$.{name}", "is missing; put in by the importer")
    draft.document, draft.id = value["trajectory"], value.get("id")
    draft.environment, draft.version = _member(value, "environment", "id"), _member(value, "environment", "version")
    draft.task = _member(value, "task", "id")
    draft.score(value.get("reward"))
    for name in envelope_fields() & set(value):
        draft.put(name, value[name])
    draft.extra = {name: item for name, item in value.items() if name == "extra" or name not in _MENDED | envelope_fields()}
    return draft


def _member(value: dict[str, Any], name: str, key: str) -> Any:
    inner = value.get(name)
    return inner.get(key) if isinstance(inner, dict) else inner if key == "id" else None
