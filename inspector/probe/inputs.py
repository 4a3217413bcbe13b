"""Makes arguments near those that tests use, so that they stay within what a function is for."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

TRIES = 200


def near(arguments: Sequence[tuple[Any, ...]], wanted: int, seed: int) -> list[tuple[Any, ...]]:
    """Up to `wanted` different tuples of arguments, none of them among those given."""
    dice = random.Random(seed)  # noqa: S311 -- no secret
    seen = {repr(each) for each in arguments}
    found: list[tuple[Any, ...]] = []
    for _ in range(TRIES if arguments else 0):
        if len(found) >= wanted:
            break
        changed = tuple(_changed(value, dice) for value in dice.choice(arguments))
        if (text := repr(changed)) not in seen and len(text) < 1000:
            seen.add(text)
            found.append(changed)
    return found


def _changed(value: Any, dice: random.Random) -> Any:
    """A value of the same type, sign and rough size."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return _step(value, dice)
    if isinstance(value, float):
        return round(value * dice.choice((0.5, 1.5, 2.0)), 6)
    if isinstance(value, str):
        return "".join(_resized(list(value), dice))
    if isinstance(value, list):
        return _resized([_sometimes(each, dice) for each in value], dice)
    if isinstance(value, tuple):
        return tuple(_sometimes(each, dice) for each in dice.sample(value, len(value)))
    if isinstance(value, dict):
        return {key: _sometimes(each, dice) for key, each in value.items()}
    return value


def _sometimes(value: Any, dice: random.Random) -> Any:
    return _changed(value, dice) if dice.random() < 0.5 else value


def _step(value: int, dice: random.Random) -> int:
    by = dice.randint(1, max(2, abs(value) // 4)) * dice.choice((-1, 1))
    stepped = value + by
    return stepped if (stepped > 0) == (value > 0) else value + abs(by) * (1 if value >= 0 else -1)


def _resized(parts: list[Any], dice: random.Random) -> list[Any]:
    """Shuffled, one shorter, or one longer by a part that was there; never empty."""
    kind = dice.randrange(3)
    if kind == 1 and len(parts) > 1:
        parts.pop(dice.randrange(len(parts)))
    elif kind == 2 and parts:
        parts.insert(dice.randrange(len(parts)), dice.choice(parts))
    else:
        dice.shuffle(parts)
    return parts
