"""Posts bodies in order, and deals with every answer that there can be."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from inspector.client.advice import known
from inspector.client.batches import Batch, halves
from inspector.client.breaker import Breaker
from inspector.client.deadletters import DeadLetters
from inspector.client.outbox import Outbox
from inspector.client.protocol import NDJSON, Fate, Outcome, Receipt, outcome
from inspector.client.stats import Counters
from inspector.client.view import View
from inspector.client.wire import Away, Wire
from inspector.verdict import Mode

HEADERS: Mapping[str, str] = {"Content-Type": NDJSON, "Content-Encoding": "zstd", "Accept": NDJSON}
COUNTED = {"created": "sent", "duplicate": "duplicates", "conflict": "conflicts", "rejected": "rejected"}


class Accountant:
    """Books what the service said of each line."""

    def __init__(self, counters: Counters, dead: DeadLetters, view: View) -> None:
        self._counters, self._dead, self._view = counters, dead, view

    def book(self, batch: Batch, receipts: Sequence[Receipt]) -> None:
        """Count the receipts, keep the refused lines, and hear the run's mode."""
        for name in {receipt.status for receipt in receipts}:
            self._counters.add(COUNTED.get(name, "rejected"), sum(receipt.status == name for receipt in receipts))
        refused = [receipt for receipt in receipts if receipt.status not in ("created", "duplicate")]
        texts = batch.texts() if refused else []
        for receipt in refused:
            self._bury(texts[receipt.line], f"{receipt.status}: {receipt.reason or ''}", receipt.path)
        mode = known(Mode, receipts[-1].mode) if receipts else None
        if mode is not None and batch.run is not None:
            self._view.hear_mode(batch.run, mode)

    def give_up(self, batch: Batch, reason: str, path: str | None) -> None:
        """The service will never take this body."""
        self._counters.add("rejected", batch.lines)
        for text in batch.texts():
            self._bury(text, reason, path)

    def _bury(self, text: bytes, reason: str, path: str | None) -> None:
        self._counters.add("dead", self._dead.keep(text, reason, path), reason=f"{path}: {reason}" if path else reason)


class Sender:
    """One task: takes the head of the outbox, posts it until its fate is known, goes on."""

    def __init__(
        self,
        wire: Wire,
        outbox: Outbox,
        counters: Counters,
        accountant: Accountant,
        *,
        breaker: Breaker,
        timeout_s: float,
        heard: Callable[[], None],
        away: Callable[[], None],
    ) -> None:
        self._wire, self._outbox, self._counters, self._accountant = wire, outbox, counters, accountant
        self._breaker, self._timeout_s, self._heard, self._away = breaker, timeout_s, heard, away
        self.bell = asyncio.Event()

    async def send(self) -> None:
        """For ever."""
        while True:
            self.bell.clear()
            batch = self._outbox.head()
            if batch is None:
                await self.bell.wait()
            else:
                await self._deliver(batch)

    async def _deliver(self, batch: Batch) -> None:
        parts, attempts = deque([batch]), 0
        while parts:
            ended, attempts = await self._try(parts[0], attempts)
            if ended.fate is Fate.LATER:
                continue
            part = parts.popleft()
            if ended.fate is Fate.SPLIT:
                parts.extendleft(reversed(halves(part)))
            elif ended.fate is Fate.TAKEN:
                self._accountant.book(part, ended.receipts)
            else:
                self._accountant.give_up(part, ended.reason, ended.path)
        self._outbox.done(batch)

    async def _try(self, part: Batch, attempts: int) -> tuple[Outcome, int]:
        """One post. Answers 500 are counted over a body and its parts: what is left of one that breaks the service need not break it as often."""
        await asyncio.sleep(self._breaker.wait_s)
        self._breaker.enter()
        try:
            reply = await self._wire.call("POST", "/v1/trajectories", content=part.body, headers=HEADERS, timeout_s=self._timeout_s)
        except Away as error:
            self._later(Outcome(Fate.LATER, reason=str(error)))
            return Outcome(Fate.LATER), attempts
        attempts += reply.status == 500
        ended = outcome(reply, part.lines, attempts=attempts)
        if ended.fate is Fate.LATER:
            self._later(ended)
        else:
            self._breaker.passed()
            self._outbox.back()
            self._counters.trouble = ""
            self._heard()
        return ended, attempts

    def _later(self, ended: Outcome) -> None:
        self._counters.add("retries")
        self._counters.trouble = ended.reason
        self._breaker.failed(ended.pause_s)
        self._away()
