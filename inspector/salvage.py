"""Reads a document that its types refuse: keeps every step and field that can be kept, and says what could not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, get_args, get_origin

import msgspec

from inspector.atif import Defects, shown
from inspector.trajectory import Content, Document, Source, Step, ToolCall

DEEPEST = 64  # levels of nesting that are kept of a document
MOST = 100_000  # elements of a list that are put right one by one; each costs about 15 µs
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]')
_ABSENT: Any = object()


class _Lost:
    """Stands where something could not be kept."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


# --- text to values ----------------------------------------------------------------------------------------------------


def parse(line: bytes, defects: Defects) -> dict[str, Any]:
    """The whole line as plain values: what is too deep or not finite becomes None and a defect."""
    try:
        value = msgspec.json.decode(line)
        if not deeper_than(value, DEEPEST + 1):  # the envelope around the document is one level
            return value  # type: ignore[no-any-return]
    except (msgspec.ValidationError, RecursionError):
        pass  # a number out of range, or too deep: both are found again below, with their places
    value = _FORGIVING.decode(_pruned(line, DEEPEST + 1).decode())
    _drop_lost(value, defects)
    return value  # type: ignore[no-any-return]


def deeper_than(value: Any, levels: int) -> bool:
    """Whether objects and arrays are nested more than `levels` deep."""
    level = [value] if value.__class__ in (dict, list) else []
    while level and levels:
        inner = [child for outer in level for child in (outer.values() if outer.__class__ is dict else outer)]
        level = [child for child in inner if child.__class__ in (dict, list)]
        levels -= 1
    return bool(level)


def _pruned(line: bytes, levels: int) -> bytes:
    """The line with every object or array below `levels` replaced by a constant that valid JSON cannot contain."""
    kept, depth, since = [], 0, 0
    for token in _TOKEN.finditer(line):
        kind = line[token.start()]
        if kind in b"{[":
            depth += 1
            if depth == levels + 1:
                kept.append(line[since : token.start()])
        elif kind in b"}]":
            if depth == levels + 1:
                kept.append(b"NaN")
                since = token.end()
            depth -= 1
    return b"".join([*kept, line[since:]])


def _finite(text: str) -> float | _Lost:
    number = float(text)
    return number if number - number == 0.0 else _Lost(f"{shown(text)} is not a finite number")


def _whole(text: str) -> int | _Lost:
    return int(text) if len(text) <= 4300 else _Lost(f"a number of {len(text)} digits is out of range")


_FORGIVING = json.JSONDecoder(parse_float=_finite, parse_int=_whole, parse_constant=lambda _: _Lost(f"nested deeper than {DEEPEST}, not read"))


def _drop_lost(value: Any, defects: Defects) -> None:
    waiting = [("$", value)]
    while waiting:
        path, outer = waiting.pop()
        for place, name, inner in list(_children(outer, path)):
            if isinstance(inner, _Lost):
                outer[name] = None
                defects.add(place, inner.reason)
            elif inner.__class__ in (dict, list):
                waiting.append((place, inner))


def _children(outer: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(outer, dict):
        return ((f"{path}.{key_of(name)}", name, inner) for name, inner in outer.items())
    return ((f"{path}[{at}]", at, inner) for at, inner in enumerate(outer))


def key_of(name: str) -> str:
    return name if name.isidentifier() and len(name) <= 100 else shown(name)


# --- values to structs -------------------------------------------------------------------------------------------------


def document(value: Any, path: str, defects: Defects) -> Document:
    """The document as far as it can be read."""
    made = _struct(Document, value, path, defects)
    return Document() if made is _ABSENT else made


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(kind)


def _struct(kind: type[msgspec.Struct], value: Any, path: str, defects: Defects) -> Any:
    if not isinstance(value, dict):
        defects.add(path, f"expected an object, got {shown(value)}")
        return _ABSENT
    made = {}
    for field in _fields(kind):
        kept = _ABSENT
        if field.name in value:
            kept = _fitted(field, value[field.name], f"{path}.{field.name}", defects)
        elif field.required:
            defects.add(f"{path}.{field.name}", "missing")
        if kept is _ABSENT and field.required:
            kept = _substitute(kind, field.name, value, path)
        if kept is not _ABSENT:
            made[field.name] = kept
    if kind is ToolCall and not made["arguments"] and isinstance(unread := value.get("arguments"), str):
        made["extra"] = {**(made.get("extra") or {}), "raw_arguments": unread}
    return kind(**made)


def _fitted(field: msgspec.structs.FieldInfo, value: Any, path: str, defects: Defects) -> Any:
    """The value in the field's type, or what can be kept of it."""
    if field.name == "subagent_trajectories":
        return _raw_list(value, path, defects)
    if field.name in ("steps", "tool_calls", "results") and isinstance(value, list):
        return _structs(field, value, path, defects)
    try:
        return msgspec.convert(value, field.type)
    except msgspec.ValidationError as error:
        if field.name in ("agent", "observation") and isinstance(value, dict):
            return _struct(_held(field), value, path, defects)
        defects.add(path, f"{str(error).partition(' - at ')[0]}: {shown(value)}")
    return _otherwise(field, value)


def _otherwise(field: msgspec.structs.FieldInfo, value: Any) -> Any:
    """Another reading of a value that has the wrong type, so that checks still see it."""
    if field.type == Content:
        return msgspec.json.encode(value).decode()
    if field.name == "arguments" and isinstance(value, str):
        try:
            parsed = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            return _ABSENT
        return parsed if isinstance(parsed, dict) and not deeper_than(parsed, DEEPEST) else _ABSENT
    return _ABSENT


def _structs(field: msgspec.structs.FieldInfo, value: list[Any], path: str, defects: Defects) -> list[Any]:
    kind, made = _held(field), []
    if len(value) > MOST:
        defects.add(path, f"not well formed, and {len(value)} long: only the first {MOST} are read")
    for at, inner in enumerate(value[:MOST]):
        try:
            kept = msgspec.convert(inner, kind)
        except msgspec.ValidationError:
            kept = _struct(kind, inner, f"{path}[{at}]", defects)
        if kept is _ABSENT and kind is Step:  # positions stay those of the posted line
            kept = Step(step_id=at + 1, source=Source.SYSTEM)
        if kept is not _ABSENT:
            made.append(kept)
    return made


def _raw_list(value: Any, path: str, defects: Defects) -> Any:
    if value is None:
        return None
    if not isinstance(value, list):
        defects.add(path, f"expected an array, got {shown(value)}")
        return _ABSENT
    return [msgspec.Raw(msgspec.json.encode(inner)) for inner in value]


def _held(field: msgspec.structs.FieldInfo) -> type[msgspec.Struct]:
    kind = struct_in(field.type)
    assert kind is not None, field.name
    return kind


def struct_in(kind: Any) -> type[msgspec.Struct] | None:
    """The one struct in a type such as `list[Step] | None`."""
    if isinstance(kind, type) and get_origin(kind) is None and issubclass(kind, msgspec.Struct):
        return kind
    return next((found for arm in get_args(kind) if (found := struct_in(arm))), None)


def _substitute(kind: type[msgspec.Struct], name: str, value: dict[str, Any], path: str) -> Any:
    """What stands in for a required field that is missing or unreadable; the defect is noted already."""
    if kind is Step:
        return int(path[path.rindex("[") + 1 : -1]) + 1 if name == "step_id" else _likely_source(value)
    if kind is ToolCall and name == "arguments":
        return {}
    return [] if name == "results" else ""


def _likely_source(value: dict[str, Any]) -> Source:
    """An unknown source is the agent's if only an agent's step looks so; else it says nothing of the agent."""
    named = value.get("source")
    if named in ("assistant", "model", "ai") or value.get("tool_calls") or value.get("reasoning_content"):
        return Source.AGENT
    return Source.USER if named == "human" else Source.SYSTEM
