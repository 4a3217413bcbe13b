"""What is kept of an environment version's last episodes: their features, by key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from inspector.anomaly.arrays import BadArrays, packed, unpacked
from inspector.anomaly.features import COUNT, NAMES
from inspector.anomaly.forest import Floats


class Kept(NamedTuple):
    """One episode."""

    features: Floats  # transformed
    added: int  # fields that had come later than its line when it was read


Window = Mapping[UUID, Kept]


def pack(window: Window) -> bytes:
    """As bytes, in the order of the keys."""
    keys = sorted(window)
    rows = np.array([window[key].features for key in keys], np.float32).reshape(-1, COUNT)
    return packed(
        {
            "names": np.frombuffer("\n".join(NAMES).encode(), np.uint8),
            "keys": np.frombuffer(b"".join(key.bytes for key in keys), np.uint8),
            "rows": rows,
            "added": np.array([window[key].added for key in keys], np.uint8),
        }
    )


def unpack(body: bytes) -> dict[UUID, Kept]:
    """Empty where it holds other features than these, or nothing. Raises BadArrays."""
    if not body:
        return {}
    found = unpacked(body)
    try:
        if found["names"].tobytes() != "\n".join(NAMES).encode():
            return {}
        keys = found["keys"].tobytes()
        rows = found["rows"].astype(np.float64)
        return {UUID(bytes=keys[16 * at : 16 * at + 16]): Kept(row, int(added)) for at, (row, added) in enumerate(zip(rows, found["added"], strict=True))}
    except (KeyError, ValueError) as error:
        raise BadArrays(f"not a window: {error}") from error


def order(keys: Sequence[UUID]) -> NDArray[np.uint64]:
    """Sorts episodes by when they were received."""
    return np.array([key.int >> 64 for key in keys], np.uint64)
