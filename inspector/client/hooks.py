"""Calls the trainer's own functions from our threads; the one place of the client that catches their mistakes."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from inspector.client.stats import Counters
from inspector.verdict import Decision

Result = TypeVar("Result")
WAITING = 10_000  # decisions that a slow `on_decision` may lag behind before calls are left out


class HookFailed(Exception):
    """A function of the trainer's raised; the message names what."""


def call(function: Callable[..., Result], *arguments: Any) -> Result:
    """Call foreign code; raises HookFailed and nothing else."""
    try:
        return function(*arguments)
    except Exception as error:
        raise HookFailed(f"{type(error).__name__}: {error}"[:500]) from error


class Listener:
    """Passes decisions to `on_decision` on a thread of its own, so that a slow one delays nothing else."""

    def __init__(self, function: Callable[[Decision], object], counters: Counters) -> None:
        self._function, self._counters = function, counters
        self._waiting: queue.Queue[Decision | None] = queue.Queue(WAITING)
        threading.Thread(target=self._run, name="inspector-decisions", daemon=True).start()

    def tell(self, decision: Decision) -> None:
        """Never waits: above WAITING the call is left out and counted."""
        try:
            self._waiting.put_nowait(decision)
        except queue.Full:
            self._counters.add("hook_failures", reason="on_decision lags too far behind")

    def stop(self) -> None:
        """Let the thread end after what it was given; never waits."""
        if not self._waiting.full():
            self._waiting.put_nowait(None)

    def _run(self) -> None:
        while (decision := self._waiting.get()) is not None:
            try:
                call(self._function, decision)
            except HookFailed as error:
                self._counters.add("hook_failures", reason=f"on_decision: {error}")
