"""The two background threads of a client: the desk, which writes and keeps, and the network, which sends and follows."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

from inspector.client.asker import Asker
from inspector.client.batches import Batch, Batcher
from inspector.client.breaker import Breaker
from inspector.client.deadletters import DeadLetters
from inspector.client.desk import Desk
from inspector.client.follower import Follower
from inspector.client.hooks import Listener
from inspector.client.inbox import Inbox
from inspector.client.lines import Line, LineMaker
from inspector.client.loop import BackgroundLoop
from inspector.client.options import Options
from inspector.client.outbox import Outbox
from inspector.client.sender import Accountant, Sender
from inspector.client.spool import Spool
from inspector.client.stats import Counters
from inspector.client.ticket import Ticket
from inspector.client.view import View
from inspector.client.wire import Wire

FORGOTTEN_S = 5.0  # to send what is left, when nobody waits for it
SHARE_FOR_SENDING = 0.5  # of a flush; after it, what was not sent goes to disk


class Courier:
    """Made on the first use in a process; daemon threads, so a process never waits for them longer than it says."""

    def __init__(self, options: Options, view: View, counters: Counters) -> None:
        self._options, self._view, self._counters = options, view, counters
        self.inbox = Inbox(options.max_queue_bytes)
        self.outbox = Outbox(_spool(options), counters, max_bytes=options.max_queue_bytes, ring=self._ring)
        self._sending, self._asking = Breaker(), Breaker()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asker: Asker | None = None
        self._sender: Sender | None = None
        self._stop: asyncio.Event | None = None
        self._asking_now: set[asyncio.Future[None]] = set()
        self._ready = threading.Event()
        self._forgotten = False
        self._threads = [threading.Thread(target=target, name=f"inspector-{name}", daemon=True) for name, target in self._targets()]
        for thread in self._threads:
            thread.start()

    @property
    def alive(self) -> bool:
        """False after a fault of ours ended a thread; the client then makes a new courier."""
        return all(thread.is_alive() for thread in self._threads)

    @property
    def away(self) -> bool:
        """Whether the service is known to be away."""
        return self._sending.shut or self._asking.shut

    def flush(self, timeout_s: float, *, delivered: bool = False) -> bool:
        """Whether everything accepted until now was taken by the service or is on disk (`delivered`: only the service counts)."""
        target, end = self.inbox.accepted, time.monotonic() + timeout_s
        self.inbox.flush()
        sending_s = 0.0 if self._sending.wait_s > timeout_s else timeout_s * (1.0 if delivered else SHARE_FOR_SENDING)
        if self.outbox.wait_settled(target, sending_s, delivered=delivered):
            return True
        self.inbox.flush(spill=True)
        return self.outbox.wait_settled(target, max(0.0, end - time.monotonic()), delivered=delivered)

    def close(self, timeout_s: float) -> bool:
        """Flush, then end both threads; whether all of it was done in time."""
        end = time.monotonic() + timeout_s
        flushed = self.flush(0.8 * timeout_s)
        self._stop_network()
        self._threads[1].join(max(0.0, end - time.monotonic()))
        self.inbox.stop()
        self._threads[0].join(max(0.0, end - time.monotonic()))
        return flushed and not any(thread.is_alive() for thread in self._threads)

    def let_go(self) -> None:
        """The client was forgotten without `close`: the threads finish by themselves. Takes no lock, since a finalizer calls it."""
        self._forgotten = self.inbox.stopped = True

    def forget(self) -> None:
        """After a fork: the threads are the parent's."""
        self.outbox.forget()

    def _targets(self) -> list[tuple[str, Callable[[], None]]]:
        return [("desk", self._keep), ("network", self._network)]

    def _keep(self) -> None:
        options = self._options
        maker = LineMaker(options.run, options.redact)
        batcher = Batcher(most_lines=options.batch_lines, most_bytes=options.batch_bytes, most_s=options.batch_ms / 1000)
        try:
            Desk(self.inbox, self.outbox, maker, batcher, self._counters, self._ask).run()
            if self._forgotten:
                self.outbox.wait_settled(self.inbox.accepted, FORGOTTEN_S)
        finally:
            self.outbox.close()
            self._stop_network()

    def _network(self) -> None:
        with asyncio.Runner(loop_factory=BackgroundLoop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        options = self._options
        wire = Wire(options.url, options.key)
        tell = Listener(options.on_decision, self._counters) if options.on_decision else None
        follower = Follower(
            wire, self._view, self._counters, run=options.run_id, wait_s=options.poll_wait_s, file=options.view_file, tell=tell.tell if tell else None
        )
        accountant = Accountant(self._counters, DeadLetters(options.spool_dir, options.scope, options.max_dead_bytes), self._view)

        def heard() -> None:
            follower.hint(wire.heard)

        self._sender = Sender(
            wire, self.outbox, self._counters, accountant, breaker=self._sending, timeout_s=options.post_timeout_s,
            heard=heard, away=lambda: self.inbox.flush(spill=True),
        )  # fmt: skip
        self._asker = Asker(wire, self.inbox, accountant, breaker=self._asking, sending=self._sending, heard=heard)
        self._stop = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._ready.set()
        tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._stop.wait()), asyncio.ensure_future(self._sender.send())]
        if options.follow:
            tasks.append(asyncio.ensure_future(follower.follow()))
        await self._until_first_ends(tasks, wire)
        if tell:
            tell.stop()

    async def _until_first_ends(self, tasks: list[asyncio.Future[Any]], wire: Wire) -> None:
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await wire.close()

    def _ring(self) -> None:
        if self._sender is not None:
            self._on_loop(self._sender.bell.set)

    def _ask(self, ticket: Ticket, bodies: list[tuple[Batch, list[Line]]]) -> None:
        """From the desk: ask on the network's thread, or, where there is none, send the ordinary way."""
        self._ready.wait(max(0.0, ticket.working_s))  # only the first call in a process ever waits here
        asker = self._asker

        def begin() -> None:
            if asker is not None:
                self._asking_now.add(task := asyncio.ensure_future(asker.ask(ticket, bodies)))
                task.add_done_callback(self._asking_now.discard)

        if asker is None or not self._on_loop(begin):
            for batch, _ in bodies:
                self.inbox.give_back(batch)
            ticket.finish()

    def _stop_network(self) -> None:
        if self._stop is not None:
            self._on_loop(self._stop.set)

    def _on_loop(self, callback: Callable[[], object]) -> bool:
        if self._loop is None:
            return False
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(callback)
            return True
        return False


def _spool(options: Options) -> Spool | None:
    if options.spool_dir is None:
        return None
    return Spool(options.spool_dir, options.scope, scopes=options.former_scopes, max_bytes=options.max_spool_bytes)
