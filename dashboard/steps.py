"""Turns a step as it was posted into the blocks that the transcript paints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from dashboard.painting import Piece, paint
from inspector.showable import showable
from inspector.step_texts import as_list, decoded, field_texts, plain, results_of

HEAD = 2_400  # characters of a longer text that are shown at first
COLLAPSED_ABOVE = 4_000
COLLAPSED_ABOVE_LINES = 60
HEAD_LINES = 40
LABEL = 120
_PLACE = re.compile(r"(tool_calls|observation\.results)\[(\d+)\](?:\.(function_name|content|arguments)(?:\.(.*))?)?", re.DOTALL)


class Block(msgspec.Struct, frozen=True, omit_defaults=True):
    """One text of a step. `length` counts its characters; what is shown may be its head alone, and the reader is told."""

    field: str
    kind: str  # message | reasoning | call | argument | result
    label: str
    text: str
    length: int
    head: int  # characters of the original that `text` shows
    pieces: tuple[Piece, ...] = ()


class ShownStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """One step of the transcript."""

    at: int  # its position, from 0, as spans count
    source: str  # system | user | agent | other
    blocks: list[Block]
    notes: list[str] = []
    bytes: int = 0


class _Labels(NamedTuple):
    kind: str
    label: str


def shown(at: int, raw: bytes, whole: str | None = None) -> ShownStep:
    """The step at position `at`; the text of the field `whole` is given to its end, and `*` names all."""
    step = decoded(raw)
    blocks = [_block(field, text, _labels(step, field), whole in (field, "*")) for field, text in field_texts(step)]
    source = step.get("source") if isinstance(step, dict) else None
    return ShownStep(at, source if source in ("system", "user", "agent") else "other", blocks, list(_notes(step)), len(raw))


def _block(field: str, text: str, labels: _Labels, whole: bool) -> Block:
    head = len(text) if whole else head_of(text)
    painted = paint(text[:head])
    return Block(field, labels.kind, labels.label, painted.text, len(text), head, painted.pieces)


def head_of(text: str) -> int:
    """How many characters of a text are shown before a reader asks for all."""
    if len(text) <= COLLAPSED_ABOVE and text.count("\n") <= COLLAPSED_ABOVE_LINES:
        return len(text)
    end = -1
    for _ in range(HEAD_LINES):
        end = text.find("\n", end + 1)
        if not 0 <= end <= HEAD:
            return HEAD
    return end


def _labels(step: Any, field: str) -> _Labels:
    if field == "message":
        return _Labels("message", "")
    if field == "reasoning_content":
        return _Labels("reasoning", "reasoning")
    found = _PLACE.fullmatch(field)
    if found is None or not isinstance(step, dict):
        return _Labels("message", "not readable as a step")
    at = int(found[2])
    if found[1] == "tool_calls":
        return _Labels("argument", _short(found[4])) if found[4] is not None else _Labels("call", "call")
    return _Labels("result", _result_label(step, at))


def _result_label(step: Mapping[str, Any], at: int) -> str:
    result = results_of(dict(step))[at]
    wanted = result.get("source_call_id") if isinstance(result, dict) else None
    calls = [call for call in as_list(step.get("tool_calls")) if isinstance(call, dict)]
    name = next((call.get("function_name") for call in calls if wanted is not None and call.get("tool_call_id") == wanted), None)
    return f"result of {_short(plain(name))}" if name else "result"


def _notes(step: Any) -> Iterator[str]:
    """What a step has beside its texts."""
    if not isinstance(step, dict):
        return
    if step.get("source") not in ("system", "user", "agent"):
        yield f"source: {_short(plain(step.get('source')))}"
    if step.get("is_copied_context"):
        yield "copied context"
    if step.get("model_name"):
        yield _short(plain(step["model_name"]))
    images = sum(isinstance(part, dict) and part.get("type") != "text" for part in _parts(step))
    if images:
        yield f"{images} part{'s' * (images > 1)} that {'are' if images > 1 else 'is'} no text"


def _parts(step: Mapping[str, Any]) -> Iterator[Any]:
    contents = [step.get("message"), *(result.get("content") for result in results_of(dict(step)) if isinstance(result, dict))]
    for content in contents:
        if isinstance(content, list):
            yield from content


def _short(text: str) -> str:
    return showable(text, limit=LABEL)
