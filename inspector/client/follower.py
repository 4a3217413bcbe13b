"""Follows the feed of decisions and applies them to the view."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from inspector.client.breaker import Breaker, retry_after_s
from inspector.client.protocol import Head, Page, Reply, SnapshotPage, refusal
from inspector.client.stats import Counters
from inspector.client.view import Standing, View, save
from inspector.client.wire import Away, Wire
from inspector.verdict import Decision, Mode

PAGE = 1000
SLACK_S = 10.0  # how much later than it was asked to a long poll may answer
CALL_S = 15.0
SAVE_EVERY_S = 1.0
ACCEPTED = (200, 304)

Kind = TypeVar("Kind", bound=msgspec.Struct)


class _Run(msgspec.Struct):
    mode: Mode


class _Numbered(msgspec.Struct):
    seq: int


class _Snapshot(NamedTuple):
    epoch: str
    seq: int
    states: list[Standing]
    decisions: list[Decision]


class Follower:
    """Long-polls from one task; `hint` makes it look at once."""

    def __init__(
        self, wire: Wire, view: View, counters: Counters, *, run: str | None, wait_s: float, file: Path | None, tell: Callable[[Decision], None] | None
    ) -> None:
        self._wire, self._view, self._counters = wire, view, counters
        self._run, self._wait_s, self._file, self._tell = run, wait_s, file, tell
        self._breaker = Breaker()
        self._hinted = asyncio.Event()
        self._saved_at = 0.0
        self._stale = not view.epoch

    def hint(self, heard: Head | None) -> None:
        """An answer said how far the feed is."""
        if heard is not None and (heard.epoch != self._view.epoch or heard.seq > self._view.seq):
            self._hinted.set()

    async def follow(self) -> None:
        """For ever: what fails is tried again, after a pause."""
        asked_mode = self._run is None
        while True:
            await asyncio.sleep(self._breaker.wait_s)
            self._breaker.enter()
            try:
                asked_mode = asked_mode or await self._ask_mode()
                await self._turn()
            except (Away, msgspec.DecodeError) as error:
                self._breaker.failed()
                self._counters.trouble = str(error)[:300]
            finally:
                self._save()

    async def _ask_mode(self) -> bool:
        reply = await self._wire.call("GET", f"/v1/runs/{self._run}", timeout_s=CALL_S)
        if reply.status == 200:
            self._view.hear_mode(self._run, msgspec.json.decode(reply.body, type=_Run).mode)
        return True  # a run that is not known yet tells its mode with the first answer to a post

    async def _turn(self) -> None:
        if self._stale or self._view.floor is not None:
            await self._snapshot()
        hinted = self._hinted.is_set()
        self._hinted.clear()
        reply = await self._poll(self._wait_s if self._view.whole and not hinted else 0.0)
        if reply is None:
            return
        more = False
        if reply.status == 410:
            self._stale = True
        elif reply.status not in ACCEPTED:
            self._refused(reply)
            return
        elif reply.status == 200:
            page = _decoded(reply, Page)
            more = page.more
            self._apply(page)
        if not (self._view.whole or more or self._stale):
            await self._complete()  # last: what is new is obeyed before what is old is read again
        self._breaker.passed()
        self._counters.trouble = ""

    async def _poll(self, wait_s: float) -> Reply | None:
        """One long poll; None when a hint ended it."""
        view = self._view
        params: dict[str, str | int | float] = {"after": view.seq, "epoch": view.epoch, "wait": wait_s, "limit": PAGE}
        headers = {"If-None-Match": f'"{view.epoch}-{view.seq}"'} if wait_s else {}
        poll = asyncio.ensure_future(self._wire.call("GET", "/v1/decisions", params=params, headers=headers, timeout_s=wait_s + SLACK_S))
        hint = asyncio.ensure_future(self._hinted.wait())
        try:
            await asyncio.wait((poll, hint), return_when=asyncio.FIRST_COMPLETED)
            return poll.result() if poll.done() else None
        finally:
            await _cancelled(poll, hint)

    def _apply(self, page: Page) -> None:
        epoch = str(page.epoch)
        if epoch != self._view.epoch or not self._continues(page):
            self._stale = True  # the cursor belongs to another log, or entries are missing: whoever stands between us may keep old pages
            return
        decisions = self._read(page.decisions, Decision)
        for decision in decisions:
            self._view.apply(decision)
            self._announce(decision)
        self._view.reach(epoch, self._view.seq + len(page.decisions))

    def _continues(self, page: Page) -> bool:
        """Whether a page begins where we are, has no gap, and ends at the head unless there is more."""
        first, last = self._view.seq + 1, self._view.seq + len(page.decisions)
        return [entry.seq for entry in self._read(page.decisions, _Numbered)] == list(range(first, last + 1)) and (page.more or page.seq <= last)

    async def _snapshot(self) -> None:
        standing = await self._standing()
        self._view.restart(*standing)
        self._counters.add("snapshots")
        self._stale = False

    async def _complete(self) -> None:
        standing = await self._standing()
        if standing.epoch == self._view.epoch:
            self._view.complete(standing.decisions)
            self._counters.add("snapshots")
        else:
            self._stale = True

    async def _standing(self) -> _Snapshot:
        states, decisions = list[Standing](), list[Decision]()
        page = first = await self._snapshot_page(None)
        while page.epoch == first.epoch:
            states += self._read(page.states, Standing)
            decisions += self._read(page.decisions, Decision)
            if page.next is None:
                return _Snapshot(str(first.epoch), first.seq, states, decisions)
            page = await self._snapshot_page(page.next)
        raise Away("the feed changed its epoch while its snapshot was read")

    async def _snapshot_page(self, cursor: str | int | None) -> SnapshotPage:
        params: dict[str, str | int | float] = {"limit": PAGE}
        if cursor is not None:
            params["after"] = cursor
        reply = await self._wire.call("GET", "/v1/decisions/snapshot", params=params, timeout_s=CALL_S)
        if reply.status != 200:
            raise Away(f"GET /v1/decisions/snapshot: {reply.status}: {refusal(reply).reason}")
        return _decoded(reply, SnapshotPage)

    def _read(self, raws: Sequence[msgspec.Raw], kind: type[Kind]) -> list[Kind]:
        found = []
        for raw in raws:
            try:
                found.append(msgspec.json.decode(raw, type=kind))
            except (msgspec.DecodeError, RecursionError) as error:
                self._counters.add("unreadable_decisions", reason=f"feed: {error}")
        return found

    def _announce(self, decision: Decision) -> None:
        self._counters.add("decisions")
        if self._tell is not None:
            self._tell(decision)

    def _refused(self, reply: Reply) -> None:
        self._counters.trouble = f"GET /v1/decisions: {reply.status}: {refusal(reply).reason}"[:300]
        self._breaker.failed(retry_after_s(reply.headers))

    def _save(self) -> None:
        if self._file is None or not self._view.epoch or time.monotonic() - self._saved_at < SAVE_EVERY_S:
            return
        self._saved_at = time.monotonic()
        try:
            save(self._view, self._file)
        except OSError as error:
            self._counters.add("spool_failures", reason=f"view: {error}")


def _decoded(reply: Reply, kind: type[Kind]) -> Kind:
    return msgspec.json.decode(reply.body, type=kind)


async def _cancelled(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
