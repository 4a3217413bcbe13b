"""The rules of token arrays: equally long, whole numbers of the right width, spans inside and in order."""

from __future__ import annotations

import binascii
import sys
from array import array

from inspector.atif import Defects, shown
from inspector.trajectory import Step, Tokens

WIDTHS = {"ids": 4, "loss_mask": 1, "logprobs": 4}  # bytes of one token: i32, u8, f32


def check(tokens: Tokens, steps: list[Step], defects: Defects) -> None:
    """Every broken rule is a grave defect: a trainer would learn from the wrong tokens."""
    lengths = {name: length for name in WIDTHS if (length := _length(name, getattr(tokens, name), defects)) is not None}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{length} {name}" for name, length in lengths.items())
        defects.add("$.tokens", f"the arrays are not equally long: {told}", grave=True)
    if tokens.spans:
        _check_spans(tokens.spans, {step.step_id for step in steps}, min(lengths.values(), default=None), defects)


def _length(name: str, encoded: str | None, defects: Defects) -> int | None:
    """How many tokens the array has; None where it is absent or unreadable."""
    if encoded is None:
        return None
    path, width = f"$.tokens.{name}", WIDTHS[name]
    try:
        packed = binascii.a2b_base64(encoded, strict_mode=True)
    except ValueError as error:
        defects.add(path, f"not base64: {error}", grave=True)
        return None
    if len(packed) % width:
        defects.add(path, f"{len(packed)} bytes are no whole number of {width}-byte values", grave=True)
        return None
    if wrong := _wrong_value(name, packed):
        defects.add(path, wrong, grave=True)
    return len(packed) // width


def _wrong_value(name: str, packed: bytes) -> str | None:
    if name == "loss_mask":
        return "holds values other than 0 and 1" if packed.translate(None, b"\x00\x01") else None
    values = array("i" if name == "ids" else "f", packed)
    if sys.byteorder == "big":
        values.byteswap()
    if name == "ids":
        return f"holds the negative id {min(values)}" if values and min(values) < 0 else None
    total = sum(values)
    return "holds a value that is not finite" if total - total != 0 else None


def _check_spans(spans: list[tuple[int, int, int]], steps: set[int], length: int | None, defects: Defects) -> None:
    before = 0
    for at, (step, start, end) in enumerate(spans):
        path = f"$.tokens.spans[{at}]"
        if step not in steps:
            defects.add(path, f"there is no step {shown(step)}", grave=True)
        if not 0 <= start <= end or (length is not None and end > length):
            defects.add(path, f"[{shown(start)}, {shown(end)}) is not inside the {'' if length is None else f'{length} '}tokens", grave=True)
        elif start < before:
            defects.add(path, f"starts at {start}, before {before}, the end of an earlier span", grave=True)
        before = max(before, end)
