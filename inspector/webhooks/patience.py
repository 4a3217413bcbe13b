"""How long a failing address is tried, and when again: as Standard Webhooks proposes, for about three days."""

from __future__ import annotations

import random
from collections.abc import Mapping

MINUTE, HOUR = 60.0, 3600.0
PAUSES_S = (5.0, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR)  # after the first failure, the second, …
SPREAD = 0.1  # so that those that failed at one moment do not come back at one moment
LONGEST_WISH_S = HOUR  # that an answer's Retry-After is heeded


def pause_s(failures: int, headers: Mapping[str, str], chance: random.Random) -> float | None:
    """Seconds to the next attempt after so many failures in a row; None after the last."""
    if failures > len(PAUSES_S):
        return None
    wished = headers.get("retry-after", "")
    wish_s = min(float(wished), LONGEST_WISH_S) if wished.isascii() and wished.isdigit() and len(wished) < 10 else 0.0
    return max(PAUSES_S[failures - 1], wish_s) * chance.uniform(1.0, 1.0 + SPREAD)
