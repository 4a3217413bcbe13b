"""Reads the reward that a verifier left, as Harbor reads it: reward.json before reward.txt, finite numbers alone."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable

from inspector.environments import boxes
from inspector.environments.protocol import Grade, Trouble
from inspector.sandbox.protocol import Box, Changed, Refused

FOLDER = "/logs/verifier"
TEXT = f"{FOLDER}/reward.txt"
JSON = f"{FOLDER}/reward.json"
REWARD_BYTES = 64 << 10


def read_reward(box: Box) -> Grade:
    """What the verifier wrote in this box; files that lower layers brought along are not seen."""
    changes = box.diff().changes
    try:
        for path, parse in ((JSON, _from_json), (TEXT, _from_text)):
            data = box.read(path, REWARD_BYTES) if changes.get(path) is Changed.WRITTEN else None
            if data is not None:
                return parse(data)
    except Refused as error:
        return _malformed(str(error))
    return _malformed("the verifier wrote no reward.json and no reward.txt")


def _malformed(why: str) -> Grade:
    return Grade(None, trouble=Trouble.MALFORMED, evidence=why)


def _from_text(data: bytes) -> Grade:
    try:
        value = float(data.decode())
    except (ValueError, UnicodeDecodeError):
        return _malformed(f"reward.txt holds {data[:80]!r}, no number")
    return Grade(value, {"reward": value}) if math.isfinite(value) else _malformed(f"reward.txt holds {value}, no finite number")


def _from_json(data: bytes) -> Grade:
    try:
        values = json.loads(data)
    except (ValueError, RecursionError):
        return _malformed(f"reward.json holds {data[:80]!r}, no JSON")
    if not isinstance(values, dict) or not values:
        return _malformed(f"reward.json holds {str(values)[:80]}, no object of numbers")
    wrong = [name for name, value in values.items() if not isinstance(value, int | float) or boxes.finite(value) is None]
    if wrong:
        return _malformed(f"reward.json: {wrong[0][:80]!r} is {str(values[wrong[0]])[:80]}, no finite number")
    components = {name: float(value) for name, value in values.items()}
    return Grade(components["reward"] if "reward" in components else _mean(components.values()), components)


def _mean(values: Iterable[float]) -> float:
    kept = list(values)
    return sum(value / len(kept) for value in kept)
