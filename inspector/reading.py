"""Reads an admitted line for all checks: one typed decode where the record is tidy, a closer look where it is not."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from inspector import atif, salvage, token_arrays
from inspector.atif import Defects
from inspector.closed import twin
from inspector.trajectory import ContentPart, Document, Envelope, Header, ObservationResult, Posted, Step, Trajectory

SUBAGENT_LEVELS = 8  # of subagents within subagents whose rules are checked
HEAVIEST, LIGHT = 320 << 20, 4 << 20  # bytes; a line of 64 MiB that is made of tiny values would take several GiB
OBJECT_BYTES, VALUE_BYTES, RAW_BYTES = 80, 40, 64
STEPS = 100_000  # of one trajectory that are read
NAMED = 500  # unknown fields that are listed by name
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_RAWS = msgspec.json.Decoder(list[msgspec.Raw])
_TIDY = msgspec.json.Decoder(twin(Posted))
_POSTED = msgspec.json.Decoder(Posted)
_ENVELOPE = msgspec.json.Decoder(Envelope)
_TIDY_DOCUMENT = msgspec.json.Decoder(twin(Document, ("steps",)))


def read(line: bytes, key: str = "") -> Trajectory:
    """The trajectory of a line that the door let through, with its defects and unknown fields. Never raises."""
    defects = Defects()
    if (weight := _weight(line)) > HEAVIEST:
        defects.add("$.trajectory", f"not read: its values would take about {weight} bytes of memory, {HEAVIEST} is the limit")
        return Trajectory(_ENVELOPE.decode(line), Document(), defects=defects.listed(), key=key)
    line = _shortened(line, defects)
    try:
        posted = _TIDY.decode(line)
    except (msgspec.ValidationError, RecursionError):
        return _read_closely(line, key, defects)
    _check(posted, posted.trajectory, defects)
    return Trajectory(posted, posted.trajectory, defects=defects.listed(), key=key)


def _shortened(line: bytes, defects: Defects) -> bytes:
    """The line with no more steps than are read; each costs its checks some microseconds, and millions would outlast any deadline."""
    if len(line) <= STEPS or (commas := line.count(b",")) < STEPS or commas * RAW_BYTES > HEAVIEST:
        return line
    try:
        envelope = _FIELDS.decode(line)
        document = _FIELDS.decode(envelope["trajectory"])
        steps = _RAWS.decode(document["steps"])
    except (msgspec.MsgspecError, RecursionError, KeyError):
        return line
    if len(steps) <= STEPS:
        return line
    defects.add("$.trajectory.steps", f"{len(steps)} steps, the limit is {STEPS}: only the first of them are read")
    kept = b"[%b]" % b",".join(map(bytes, steps[:STEPS]))
    shorter = msgspec.json.encode({**document, "steps": msgspec.Raw(kept)})
    return msgspec.json.encode({**envelope, "trajectory": msgspec.Raw(shorter)})


def _weight(line: bytes) -> int:
    """About how many bytes the values of a line take at most, beside their text; a short line needs no look."""
    if len(line) <= LIGHT:
        return 0
    return OBJECT_BYTES * (line.count(b"{") + line.count(b"[")) + VALUE_BYTES * line.count(b",")


def _check(header: Header, document: Document, defects: Defects) -> None:
    atif.check(document, "$.trajectory", defects)
    if document.subagent_trajectories:
        _check_subagents(document.subagent_trajectories, "$.trajectory.subagent_trajectories", defects, SUBAGENT_LEVELS)
    if header.tokens is not None:
        token_arrays.check(header.tokens, document.steps, defects)


def _read_closely(line: bytes, key: str, defects: Defects) -> Trajectory:
    value = salvage.parse(line, defects)
    unknown: dict[str, None] = {}
    _list_unknown(value, Posted, "$", unknown)
    header, document = _header_and_document(line, value, defects)
    _check(header, document, defects)
    return Trajectory(header, document, defects=defects.listed(), unknown=_capped(unknown), key=key)


def _header_and_document(line: bytes, value: dict[str, Any], defects: Defects) -> tuple[Header, Document]:
    if "steps" not in value["trajectory"]:
        defects.add("$.trajectory.steps", "missing")
    try:
        posted = _POSTED.decode(line)
        return posted, posted.trajectory
    except (msgspec.ValidationError, RecursionError):
        document = salvage.document(value["trajectory"], "$.trajectory", defects)
    try:
        return _ENVELOPE.decode(line), document
    except RecursionError:  # this stack is deeper than the door's was
        return msgspec.convert({name: inner for name, inner in value.items() if name != "trajectory"}, Header), document


def _check_subagents(subagents: list[msgspec.Raw], path: str, defects: Defects, levels: int) -> None:
    if not levels:
        defects.add(path, f"subagents nested more than {SUBAGENT_LEVELS} deep are not read")
        return
    read_ones = [(f"{path}[{at}]", _subagent(bytes(raw), f"{path}[{at}]", defects)) for at, raw in enumerate(subagents)]
    atif.check_subagents(read_ones, path, defects)
    for where, document in read_ones:
        atif.check(document, where, defects)
        if document.subagent_trajectories:
            _check_subagents(document.subagent_trajectories, f"{where}.subagent_trajectories", defects, levels - 1)


def _subagent(raw: bytes, path: str, defects: Defects) -> Document:
    try:
        return _TIDY_DOCUMENT.decode(raw)  # type: ignore[no-any-return]
    except (msgspec.ValidationError, RecursionError):
        value = salvage.parse(raw, Defects())  # the whole line was searched for lost values already
        if isinstance(value, dict) and "steps" not in value:
            defects.add(f"{path}.steps", "missing")
        return salvage.document(value, path, defects)


# --- unknown fields ----------------------------------------------------------------------------------------------------

_FREE_FORM: dict[tuple[type[msgspec.Struct], str], type[msgspec.Struct]] = {
    (Step, "metrics"): atif.Metrics,
    (Document, "final_metrics"): atif.FinalMetrics,
    (ObservationResult, "subagent_trajectory_ref"): atif.SubagentRef,
    (ContentPart, "source"): atif.MediaSource,
    (Document, "subagent_trajectories"): Document,
}


@cache
def _known(kind: type[msgspec.Struct]) -> tuple[frozenset[str], list[tuple[str, type[msgspec.Struct]]]]:
    """The fields of a struct, and those of them that hold structs."""
    fields = msgspec.structs.fields(kind)
    held = ((field.name, _FREE_FORM.get((kind, field.name)) or salvage.struct_in(field.type)) for field in fields)
    return frozenset(field.name for field in fields), [(name, inner) for name, inner in held if inner is not None]


def _list_unknown(value: dict[str, Any], kind: type[msgspec.Struct], path: str, unknown: dict[str, None]) -> None:
    """Add the paths of fields that `kind` does not know; an index is written `*`, so the list stays short."""
    known, holding = _known(kind)
    if not value.keys() <= known:
        unknown.update((f"{path}.{salvage.key_of(name)}", None) for name in value if name not in known)
    for name, held in holding:
        inner = value.get(name)
        if inner.__class__ is dict and name != "rewards":
            _list_unknown(inner, held, f"{path}.{name}", unknown)
        elif inner is not None:
            below = f"{path}.{name}[*]"
            for each in inner.values() if isinstance(inner, dict) else inner if isinstance(inner, list) else ():
                if each.__class__ is dict:
                    _list_unknown(each, held, below, unknown)


def _capped(unknown: dict[str, None]) -> list[str]:
    names = list(unknown)
    return names if len(names) <= NAMED else [*names[:NAMED], f"and {len(names) - NAMED} more, not listed by name"]
