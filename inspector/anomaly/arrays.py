"""Arrays as bytes: numpy's own archive, which can hold no objects and runs no code when it is read."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from inspector.errors import InspectorError


class BadArrays(InspectorError):
    """Stored arrays that cannot be read."""


def packed(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The same arrays give the same bytes."""
    out = BytesIO()
    np.savez_compressed(out, allow_pickle=False, **dict(arrays))
    return out.getvalue()


def unpacked(body: bytes) -> dict[str, NDArray[Any]]:
    """Raises BadArrays."""
    try:
        with np.load(BytesIO(body), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, EOFError, OSError, BadZipFile) as error:
        raise BadArrays(f"not an archive of plain arrays: {error}") from error
