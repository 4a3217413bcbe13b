"""Serves one folder until it is told to stop: `inspector up`."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from inspector.embedded.installation import KEYS_FILE
from inspector.embedded.ports import Guard, Ports
from inspector.embedded.stack import ALL, Part, Stack, say
from inspector.settings import Settings

LOOK_AFTER_S = 5.0


class Signals:
    """Counts requests to stop; a handler that only writes to a pipe cannot meet a lock that its own thread holds."""

    STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self) -> None:
        self.received = 0
        self._read, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._receive) for number in self.STOP}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._read)
        os.close(self._write)

    def wait(self, timeout_s: float) -> bool:
        """Whether one came, at the latest after `timeout_s`."""
        if not self.received:
            select.select([self._read], [], [], timeout_s)
        return self.received > 0

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.received += 1
        os.write(self._write, b"!")


def up(data: Path, *, settings: Settings, guard: Guard | None = None, parts: Iterable[Part] = ALL, api_processes: int = 1) -> None:
    """Bring the service up on `data` and serve until SIGINT, SIGTERM or SIGHUP; a second one hastens the stop.

    To be called from the main thread. Raises CannotStart, with everything stopped again, when it does not come up.
    """
    with Signals() as signals:
        stack = Stack(
            data,
            parts=parts,
            ports=Ports(settings.port, settings.dashboard_port),
            settings=settings,
            api_processes=api_processes,
            guard=guard,
            give_up=lambda: signals.received > 0,
            hurry=lambda: signals.received > 1,
        )
        with stack:
            _greet(stack)
            while not signals.wait(LOOK_AFTER_S):
                stack.bound_logs()
            say("stopping; what is in hand is finished first (again to hasten)")
        say("stopped")


def _greet(stack: Stack) -> None:
    say(f"data in {stack.data}, logs in {stack.data / 'logs'}")
    if stack.keys:
        say(f"keys in {stack.data / KEYS_FILE}")
    if "api" in stack.children:
        say(f"API on {stack.api_url}")
    if "dashboard" in stack.children:
        say(f"dashboard: {stack.login_address()}")
    say("ready; Ctrl-C stops it")
