"""The thread that writes trajectories as lines, batches them and puts them into the outbox."""

from __future__ import annotations

from collections.abc import Callable

from inspector.client.advice import Asked
from inspector.client.batches import Batch, Batcher, batch_of
from inspector.client.inbox import Inbox, Taken
from inspector.client.lines import Line, LineMaker, Submitted, Unfit, Withheld, named
from inspector.client.outbox import Outbox
from inspector.client.stats import Counters
from inspector.client.ticket import Ticket

Ask = Callable[[Ticket, list[tuple[Batch, list[Line]]]], None]
BODY_BYTES = 16 << 20  # of one urgent body, inflated


class Desk:
    """Everything that costs time or touches the disk happens here, never on a trainer's thread."""

    def __init__(self, inbox: Inbox, outbox: Outbox, maker: LineMaker, batcher: Batcher, counters: Counters, ask: Ask) -> None:
        self._inbox, self._outbox, self._maker, self._batcher, self._counters, self._ask = inbox, outbox, maker, batcher, counters, ask

    def run(self) -> None:
        """Until the inbox is stopped and empty."""
        self._outbox.adopt()
        while not self.turn():
            pass

    def turn(self) -> bool:
        """One round; whether it was the last."""
        taken = self._inbox.take(self._batcher.wait_s)
        for ticket in taken.tickets:
            self._urgent(ticket)
        for batch in taken.returned:
            self._outbox.put(batch)
        for submitted in taken.submitted:
            self._enclose(submitted)
        self._close_batch(taken)
        return taken.stopped

    def _close_batch(self, taken: Taken) -> None:
        if taken.flush or taken.stopped or self._batcher.wait_s == 0:
            self._put(self._batcher.close())
        if taken.spill:
            self._outbox.spill()
        self._outbox.tidy()

    def _enclose(self, submitted: Submitted) -> None:
        line = self._line(submitted)
        if isinstance(line, Line):
            self._inbox.learn_size(len(line.text))
            self._put(self._batcher.add(line))
        else:
            self._outbox.lost(1)

    def _put(self, batches: list[Batch]) -> None:
        for batch in batches:
            self._outbox.put(batch)

    def _urgent(self, ticket: Ticket) -> None:
        written = [self._line(submitted) for submitted in ticket.submitted]
        ticket.asked = [line.asked if isinstance(line, Line) else line for line in written]
        ticket.lines = [line for line in written if isinstance(line, Line)]
        self._ask(ticket, bodies(ticket.lines))

    def _line(self, submitted: Submitted) -> Line | Asked:
        try:
            return self._maker.line(submitted)
        except Unfit as error:
            self._counters.add("withheld" if isinstance(error, Withheld) else "rejected", reason=str(error))
            asked = named(submitted)
            return Asked(id=asked.id, group=asked.group, refusal=str(error))


def bodies(lines: list[Line]) -> list[tuple[Batch, list[Line]]]:
    """Lines in bodies that the service takes at once."""
    parts, size = list[list[Line]](), BODY_BYTES
    for line in lines:
        if size + len(line.text) > BODY_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(line)
        size += len(line.text)
    return [(batch_of(part), part) for part in parts]
