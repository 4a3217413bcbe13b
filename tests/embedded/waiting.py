"""Waits for something to become true, with a limit."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(true: Callable[[], object], seconds: float = 30.0) -> None:
    give_up_at = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < give_up_at, f"not so within {seconds} s"
        time.sleep(0.02)
