"""What reading one trajectory's actions may still cost: whoever reads them hands it in, and the parsers draw on it."""

from __future__ import annotations

import threading

SHELL_S = 1.0  # of CPU, for all shell texts of a trajectory
PROGRAM_CHARS = 1 << 19  # of all its programs
_OWN = threading.local()


class Allowance:
    """Of one trajectory."""

    __slots__ = ("program_chars", "shell_s")

    def __init__(self) -> None:
        self.shell_s = SHELL_S
        self.program_chars = PROGRAM_CHARS


def draw_on(allowance: Allowance) -> None:
    """From now on this thread reads at the expense of that trajectory."""
    _OWN.current = allowance


def current() -> Allowance:
    """What this thread draws on."""
    if not hasattr(_OWN, "current"):
        _OWN.current = Allowance()
    return _OWN.current  # type: ignore[no-any-return]
