"""Claims and audits block after block, in either lane."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from inspector.store.work import Claim


def drain(claim: Callable[[], list[Claim]], audit: Callable[[Sequence[Claim]], None], for_s: float) -> int:
    """Audit until nothing is left to claim, and begin no block after `for_s`; how many were claimed."""
    done, end = 0, time.monotonic() + for_s
    while time.monotonic() < end and (claims := claim()):
        audit(claims)
        done += len(claims)
    return done
