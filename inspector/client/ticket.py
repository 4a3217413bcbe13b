"""One call of `decide`, between the trainer's thread that waits and ours that work."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future

from inspector.client.advice import Advice, Asked, Decisions, Ruling, Terms, with_their_groups
from inspector.client.lines import Line, Submitted, Unfit, line_of, named

MARGIN = 0.1  # of the time, kept for the way back
LEAST_MARGIN_S = 0.01


class Ticket:
    """Filled in step by step: whenever the time is over, what is known by then is the answer."""

    def __init__(self, submitted: Sequence[Submitted], limit_s: float, terms: Terms) -> None:
        self.submitted = submitted
        self.terms = terms
        self.deadline = time.monotonic() + limit_s
        self.margin_s = max(LEAST_MARGIN_S, MARGIN * limit_s)
        self.future: Future[None] = Future()
        self.asked: list[Asked] = []  # aligned with `submitted` once it is written
        self.lines: list[Line] = []
        self.rulings: dict[str, Ruling] = {}
        self.refusals: dict[str, str] = {}
        self.trouble = ""

    @property
    def left_s(self) -> float:
        """Seconds until the trainer goes on without us."""
        return self.deadline - time.monotonic()

    @property
    def working_s(self) -> float:
        """Seconds that our own threads may still use."""
        return self.left_s - self.margin_s

    def finish(self) -> None:
        """Nothing more will be known."""
        if not self.future.done():
            self.future.set_result(None)

    def decisions(self, epoch: str, seq: int) -> Decisions:
        """The answer as far as it is known now."""
        asked = self.asked or [_asked(trajectory) for trajectory in self.submitted]
        return Decisions(with_their_groups([self._advice(one) for one in asked]), epoch=epoch, seq=seq)

    def _advice(self, asked: Asked) -> Advice:
        ruling = self.rulings.get(asked.id)
        if asked.refusal or ruling is None:
            reason = asked.refusal or self.refusals.get(asked.id) or self.trouble or "no decision in time"
            return self.terms.unaudited(asked, reason)
        return self.terms.advice(asked, ruling)


def _asked(trajectory: Submitted) -> Asked:
    try:
        return line_of(trajectory).asked if isinstance(trajectory, bytes) else named(trajectory)
    except Unfit:
        return Asked(id="")
