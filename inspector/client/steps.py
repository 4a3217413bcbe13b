"""Tells the service in the background what each update was trained on."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any, NamedTuple

from inspector.client.http import Api, ApiError
from inspector.client.stats import Counters

WAITING = 10_000  # reports that wait for the service; beyond it the oldest is dropped and counted
PAUSE_S = (0.5, 10.0)  # after a failure, doubling
TIMEOUT_S = 10.0
LOST = (400, 401, 403, 404, 409, 413, 422)  # answers that asking again would not change


class Report(NamedTuple):
    """Of one update."""

    run: str
    step: int
    body: dict[str, Any]


class StepReports:
    """Sends them in their order, on one daemon thread of its own that ends when nothing waits."""

    def __init__(self, url: str, key: str, counters: Counters) -> None:
        self._url, self._key, self._counters = url, key, counters
        self._waiting: deque[Report] = deque()
        self._changed = threading.Condition()
        self._running = False
        self._left = False  # nobody waits for us any more

    def offer(self, report: Report) -> None:
        """Never waits."""
        with self._changed:
            if len(self._waiting) == WAITING:
                self._waiting.popleft()
                self._counters.add("steps_lost", reason=f"more than {WAITING} step reports wait")
            self._waiting.append(report)
            if not self._running:
                self._running = True
                threading.Thread(target=self._send, name="inspector-steps", daemon=True).start()
            self._changed.notify_all()

    def flush(self, timeout_s: float) -> bool:
        """Whether all were taken within that time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting, timeout_s)

    def leave(self) -> None:
        """What still waits is given up."""
        with self._changed:
            self._left = True
            self._counters.add("steps_lost", len(self._waiting))
            self._waiting.clear()
            self._changed.notify_all()

    def _send(self) -> None:
        pause_s = PAUSE_S[0]
        with Api(self._url, self._key, timeout_s=TIMEOUT_S) as api:
            while (report := self._next()) is not None:
                try:
                    api.post_step(report.run, report.step, report.body)
                    self._done(report, "steps")
                    pause_s = PAUSE_S[0]
                except ApiError as error:
                    if error.status in LOST:
                        self._done(report, "steps_lost", reason=f"step {report.step} of {report.run}: {error}"[:500])
                    else:
                        self._counters.trouble = str(error)[:300]
                        self._pause(pause_s)
                        pause_s = min(2 * pause_s, PAUSE_S[1])

    def _next(self) -> Report | None:
        with self._changed:
            if self._waiting:
                return self._waiting[0]
            self._running = False
            return None

    def _done(self, report: Report, counted: str, reason: str = "") -> None:
        with self._changed:
            if self._waiting and self._waiting[0] is report:
                self._waiting.popleft()
            self._counters.add(counted, reason=reason)
            self._changed.notify_all()

    def _pause(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        with self._changed:
            while not self._left and (rest_s := end - time.monotonic()) > 0:
                self._changed.wait(rest_s)
