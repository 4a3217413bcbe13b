"""Decides when the service may be tried again: backoff, circuit breaker, Retry-After."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

FIRST_PAUSE_S = 0.1
LONGEST_RETRY_AFTER_S = 600.0  # a service that asks for more is asked again after this


class Breaker:
    """Closed until `failures` in a row, then open for `open_s` with jitter, then one trial decides."""

    def __init__(
        self, *, failures: int = 5, open_s: float = 10.0, clock: Callable[[], float] = time.monotonic, jitter: Callable[[], float] = random.random
    ) -> None:
        self._limit, self._open_s, self._clock, self._jitter = failures, open_s, clock, jitter
        self._failures = 0
        self._until = 0.0
        self._told = False  # the service itself named the pause

    @property
    def shut(self) -> bool:
        """Whether a caller who cannot wait had better not try."""
        return self.wait_s > 0 and (self._told or self._failures >= self._limit)

    @property
    def wait_s(self) -> float:
        """Seconds until the next try."""
        return max(0.0, self._until - self._clock())

    def enter(self) -> None:
        """A try begins; while the breaker is half open, it is the only one."""
        if self._failures >= self._limit:
            self._until = self._clock() + self._open_s

    def passed(self) -> None:
        """The service answered."""
        self._failures, self._until, self._told = 0, 0.0, False

    def failed(self, retry_after_s: float | None = None) -> None:
        """The service did not answer, or asked for a pause."""
        self._failures += 1
        self._told = retry_after_s is not None
        pause = self._open_s if self._failures >= self._limit else FIRST_PAUSE_S * 2 ** (self._failures - 1)
        pause *= 0.75 + 0.5 * self._jitter()
        self._until = self._clock() + max(pause, min(retry_after_s or 0.0, LONGEST_RETRY_AFTER_S))


def retry_after_s(headers: Mapping[str, str], now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> float | None:
    """Seconds that `Retry-After` asks for, as a number or as a date; None where it says nothing that can be read."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    if value.isascii() and value.replace(".", "", 1).isdigit():
        return float(value)
    try:
        return max(0.0, (parsedate_to_datetime(value) - now()).total_seconds())
    except (ValueError, TypeError):  # TypeError: a date without a zone
        return None
