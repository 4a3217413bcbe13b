"""Posts what `decide` was given and collects the decisions, until its time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from inspector.client.batches import Batch
from inspector.client.breaker import Breaker
from inspector.client.inbox import Inbox
from inspector.client.lines import Line
from inspector.client.protocol import Fate, Lookup, Receipt, outcome
from inspector.client.sender import HEADERS, Accountant
from inspector.client.ticket import Ticket
from inspector.client.wire import Away, Wire

Bodies = Sequence[tuple[Batch, list[Line]]]
WORTH_ASKING_S = 0.02


class Asker:
    """What it cannot post in time goes the ordinary way, so that it is audited all the same."""

    def __init__(self, wire: Wire, inbox: Inbox, accountant: Accountant, *, breaker: Breaker, sending: Breaker, heard: Callable[[], None]) -> None:
        self._wire, self._inbox, self._accountant = wire, inbox, accountant
        self._breaker, self._sending, self._heard = breaker, sending, heard

    @property
    def shut(self) -> bool:
        """Whether the service is known to be away, so that asking would only cost time."""
        return self._breaker.shut or self._sending.shut

    async def ask(self, ticket: Ticket, bodies: Bodies) -> None:
        """Fill in the ticket; never raises for what the service does."""
        try:
            posted = await asyncio.gather(*(self._post(ticket, batch, lines) for batch, lines in bodies))
            if any(posted):
                await self._look_up(ticket)
        finally:
            ticket.finish()

    async def _post(self, ticket: Ticket, batch: Batch, lines: list[Line]) -> bool:
        receipts = await self._receipts(ticket, batch)
        if receipts is None:
            self._inbox.give_back(batch)
            return False
        self._accountant.book(batch, receipts)
        for receipt in receipts:
            _fill_in(ticket, lines[receipt.line].asked.id, receipt)
        return True

    async def _receipts(self, ticket: Ticket, batch: Batch) -> Sequence[Receipt] | None:
        if self.shut or ticket.working_s <= 0:
            ticket.trouble = "the service is away" if self.shut else "no time left"
            return None
        self._breaker.enter()
        wait_s = max(0.0, ticket.working_s - ticket.margin_s)
        try:
            reply = await self._wire.call(
                "POST", "/v1/trajectories", params={"wait": round(wait_s, 3)}, content=batch.body, headers=HEADERS, timeout_s=ticket.working_s
            )
        except Away as error:
            ticket.trouble = str(error)
            self._breaker.failed()
            return None
        ended = outcome(reply, batch.lines)
        if ended.fate is Fate.TAKEN:
            self._breaker.passed()
            self._heard()
            return ended.receipts
        ticket.trouble = ended.reason
        if ended.fate is Fate.LATER:
            self._breaker.failed(ended.pause_s)
        return None

    async def _look_up(self, ticket: Ticket) -> None:
        """Once more for what had no decision when the post was answered."""
        ids = [line.asked.id for line in ticket.lines if line.asked.id not in ticket.rulings and line.asked.id not in ticket.refusals]
        wait_s = ticket.working_s - ticket.margin_s
        if not ids or wait_s < WORTH_ASKING_S:
            return
        content = msgspec.json.encode({"ids": ids})
        headers = {"Content-Type": "application/json"}
        try:
            reply = await self._wire.call(
                "POST", "/v1/decisions/lookup", params={"wait": round(wait_s, 3)}, content=content, headers=headers, timeout_s=ticket.working_s
            )
            found = msgspec.json.decode(reply.body, type=Lookup) if reply.status == 200 else Lookup()
        except (Away, msgspec.DecodeError) as error:
            ticket.trouble = str(error)
            return
        ticket.rulings.update({name: ruling for name, ruling in found.decisions.items() if ruling is not None})
        self._heard()


def _fill_in(ticket: Ticket, trajectory_id: str, receipt: Receipt) -> None:
    if receipt.decision is not None:
        ticket.rulings[trajectory_id] = receipt.decision
    elif receipt.status not in ("created", "duplicate"):
        ticket.refusals[trajectory_id] = f"{receipt.status}: {receipt.path or ''} {receipt.reason or ''}".strip()
