"""Walks the texts of one step as it was posted, each with the name of its field that spans use; takes whatever shape it has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec


class FieldText(NamedTuple):
    """Offsets of spans count the code points of `text`."""

    field: str  # message | reasoning_content | tool_calls[i].function_name | tool_calls[i].arguments.NAME | observation.results[i].content
    text: str


def decoded(raw: bytes) -> Any:
    """A step, by the decoder that takes it; as plain text where none does."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        return json.loads(raw)  # takes lone surrogates and numbers that overflow
    except (ValueError, RecursionError):
        return raw.decode("utf-8", "replace")


def field_texts(step: Any) -> Iterator[FieldText]:
    """Every text of a decoded step in reading order; what is no text is given as JSON."""
    if not isinstance(step, dict):
        yield FieldText("", plain(step))
        return
    for name in ("reasoning_content", "message"):
        if step.get(name) is not None:
            yield FieldText(name, content_text(step[name]))
    for at, call in enumerate(as_list(step.get("tool_calls"))):
        yield from _of_call(f"tool_calls[{at}]", call)
    for at, result in enumerate(results_of(step)):
        content = result.get("content") if isinstance(result, dict) else result
        if content is not None:
            yield FieldText(f"observation.results[{at}].content", content_text(content))


def _of_call(place: str, call: Any) -> Iterator[FieldText]:
    if not isinstance(call, dict):
        yield FieldText(place, plain(call))
        return
    if call.get("function_name") is not None:
        yield FieldText(f"{place}.function_name", plain(call["function_name"]))
    arguments = call.get("arguments")
    if isinstance(arguments, dict):
        for name, value in arguments.items():
            yield FieldText(f"{place}.arguments.{name}", plain(value))
    elif arguments is not None:
        yield FieldText(f"{place}.arguments", plain(arguments))


def results_of(step: dict[str, Any]) -> list[Any]:
    """The results of a step's observation, however it is written."""
    observation = step.get("observation")
    return as_list(observation.get("results")) if isinstance(observation, dict) else as_list(observation)


def as_list(value: Any) -> list[Any]:
    """None is empty; what is no list is its only element."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def content_text(content: Any) -> str:
    """A message or an observation as checks read it: the texts of its parts, a line each."""
    if not isinstance(content, list):
        return plain(content)
    texts = [part.get("text") if isinstance(part, dict) else part for part in content]
    return "\n".join(plain(text) for text in texts if text)


def plain(value: Any) -> str:
    """A text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # a lone surrogate somewhere inside
        return json.dumps(value, separators=(",", ":"))
    except RecursionError:
        return "[nested too deeply to be read]"
