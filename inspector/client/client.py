"""The client of a training loop, which never hangs, crashes or slows down because of us; and its async twin."""

from __future__ import annotations

import asyncio
import atexit
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from inspector.client.advice import Admission, Advice, Decisions, Life, RollbackAdvice, Terms
from inspector.client.courier import Courier
from inspector.client.lines import Redact, Submitted
from inspector.client.loop import on_daemon_thread
from inspector.client.options import Options, ceiling, fail_mode, run_ref
from inspector.client.stats import Counters, Stats
from inspector.client.steps import Report, StepReports
from inspector.client.ticket import Ticket
from inspector.client.view import View, load
from inspector.errors import BadSubmission, Unavailable
from inspector.trajectory import Posted, RunRef
from inspector.verdict import Decision

EXIT_S = 3.0  # what the end of a process may cost at most
TICKETS = 16  # calls of `decide` at once
ROOM_S = 0.005  # between two looks for room, where a thread must not wait

_living: weakref.WeakSet[_Base] = weakref.WeakSet()
_parents: list[Courier] = []  # of the process that we were forked from: kept, since to finalize them would close what is not ours


class _Base:
    """What both faces share: everything that waits for nothing."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        run: RunRef | str | None = None,
        spool_dir: str | os.PathLike[str] | None = None,
        deadline_s: float = 0.5,
        fail_mode: str = "open",
        strict: bool = False,
        redact: Redact | None = None,
        on_decision: Callable[[Decision], object] | None = None,
        mode: str | None = None,
        max_queue_bytes: int = 64 << 20,
        max_spool_bytes: int = 1 << 30,
        max_dead_bytes: int = 64 << 20,
        batch_lines: int = 500,
        batch_bytes: int = 8 << 20,
        batch_ms: float = 50.0,
        post_timeout_s: float = 30.0,
        poll_wait_s: float = 25.0,
        follow: bool = True,
        former_keys: Iterable[str] = (),
    ) -> None:
        """Raises BadOption, here and never later. Nothing is sent, read or started before the first use.

        run: filled in where a trajectory names none. deadline_s: of one `decide` as a whole, and the longest that `submit`
        waits for room. fail_mode: what happens to what was not judged in time: `open` keeps it, `closed` excludes its group.
        mode="observe" lowers an enforcing run for this process. spool_dir: may be shared by processes; None keeps nothing on
        disk. redact: changes a trajectory's dict before it leaves. former_keys: replaced keys of the same project.
        """
        self._options = Options(
            url=url.rstrip("/"), key=key, run=run_ref(run), spool_dir=Path(spool_dir).expanduser() if spool_dir is not None else None,
            deadline_s=deadline_s, fail_mode=_fail_mode(fail_mode), strict=strict, redact=redact, on_decision=on_decision, mode=ceiling(mode),
            max_queue_bytes=max_queue_bytes, max_spool_bytes=max_spool_bytes, max_dead_bytes=max_dead_bytes, batch_lines=batch_lines,
            batch_bytes=batch_bytes, batch_ms=batch_ms, post_timeout_s=post_timeout_s, poll_wait_s=poll_wait_s, follow=follow,
            former_keys=tuple(former_keys),
        )  # fmt: skip
        self._begin()

    def _begin(self) -> None:
        self.view = View(self._options.mode)
        self._counters = Counters()
        self._starting = threading.Lock()
        self._courier: Courier | None = None
        self._steps: StepReports | None = None
        self._life = Life()  # of a run of which nothing was said yet
        self._lives: dict[str, Life] = {}  # by run
        self._finalizer: weakref.finalize[Any, Any] | None = None
        self._asking = threading.BoundedSemaphore(TICKETS)
        self._closed = False
        if (file := self._options.view_file) and (saved := load(file)) is not None:
            self.view.restored(saved)
        _living.add(self)

    # --- what costs nothing -------------------------------------------------------------------------------------------

    @property
    def stats(self) -> Stats:
        """What became of everything so far."""
        courier = self._courier
        waiting = {"queued_bytes": courier.outbox.queued_bytes, "spool_bytes": courier.outbox.spool_bytes} if courier else {}
        return self._counters.read(**waiting)

    def admit(self, environment: str, version: str, task: str | None = None) -> Admission:
        """Whether to roll out, or to learn from, this environment version or task: one look into the local view, no waiting.

        Ask twice: when sampling, and when a group enters the batch, since prefetch holds rows of what was quarantined since.
        In observe mode everything is admitted, and `would_refuse` says what enforce mode would have done. `audit_rate` is the
        share of its groups that the service wants to be shown at least, 1.0 of what is watched or on probation.
        """
        self._ensure()
        return self.view.admit(environment, version, task, self._options.run_id)

    def advice(self, trajectory_id: str, group: str | None = None) -> Advice | None:
        """What the feed last said of a trajectory or its group, for rows that waited in a buffer; None when it said nothing."""
        self._ensure()
        decision = self.view.standing(trajectory_id, group)
        return self._terms().standing(trajectory_id, decision) if decision else None

    def report_step(self, step: int, *, policy_before: int, policy_after: int, run: str | None = None, **more: Any) -> None:
        """Tell in the background what an update was trained on; waits for nothing.

        `more` may hold checkpoint (where the new version was saved), used ([{id, weight, reward}, …] as the advantage was computed
        from them), feed ({epoch, seq}) and statistics. Each step is told once, by one process; until the service took it, it
        waits in memory. A step from an earlier version than the newest one says that the run went back: see `resumes_from`.
        Raises ValueError where neither the client nor the call names a run.
        """
        named = self._named(run)
        with self._starting:
            if self._steps is None:
                self._steps = StepReports(self._options.url, self._options.key, self._counters)
            steps = self._steps
        self._lives[named] = life = self._lives.get(named, self._life).gone_on(policy_before)
        steps.offer(Report(named, step, {"policy_before": policy_before, "policy_after": policy_after, "attempt": life.attempt, **more}))

    def resumes_from(self, policy_version: int, *, run: str | None = None) -> None:
        """Training of a run goes on from this version, as a checkpoint holds it: say so before the first step.

        Steps that are told from now on replace what came after that version, and advice to go back that this follows no
        longer stands. Raises ValueError where neither the client nor the call names a run.
        """
        self._lives[self._named(run)] = Life(began_from=policy_version)

    def rollback_advice(self, run: str | None = None) -> RollbackAdvice | None:
        """Where a run is advised to go back to, until it did; None where it is not, and where it is only observed. Waits for nothing.

        Raises ValueError where neither the client nor the call names a run.
        """
        self._ensure()
        named = self._named(run)
        decision = self.view.rollback(named)
        if decision is None or decision.rollback is None or not self.view.binds(named) or self._lives.get(named, self._life).follows(decision.rollback):
            return None
        told = decision.rollback
        return RollbackAdvice(
            run=named, policy_version=told.policy_version, checkpoint=told.checkpoint, last_clean=told.last_clean, first_step=told.first_step,
            last_step=told.last_step, share=told.share, cause=decision.cause, reason="; ".join(decision.reasons), seq=decision.seq,
        )  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        """{epoch, seq}: under which decisions this process trains. Belongs into the checkpoint."""
        return self.view.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a checkpoint: the view will know at least what it knew."""
        self.view.load_state_dict(state)

    def _named(self, run: str | None) -> str:
        named = run or self._options.run_id
        if named is None:
            raise ValueError("run: neither the client nor the call names one")
        return named

    # --- shared steps -------------------------------------------------------------------------------------------------

    def _ensure(self) -> Courier | None:
        courier = self._courier
        if (courier is not None and courier.alive) or self._closed:
            return courier
        with self._starting:
            if self._courier is None or not self._courier.alive:
                if self._courier is not None:
                    self._courier.let_go()
                self._courier = courier = Courier(self._options, self.view, self._counters)
                self._finalizer = weakref.finalize(self, courier.let_go)
                self._finalizer.atexit = False
                _close_at_end_of_worker()
            return self._courier

    def _terms(self) -> Terms:
        return Terms(fail_mode=self._options.fail_mode, ceiling=self._options.mode, mode=self.view.mode(self._options.run_id))

    def _offer(self, trajectories: list[Submitted]) -> list[Submitted]:
        """What found no room."""
        courier = self._ensure()
        if courier is None or self._closed:
            return trajectories
        taken = courier.inbox.offer(trajectories)
        self._counters.add("submitted", taken)
        return trajectories[taken:]

    def _left_out(self, trajectories: list[Submitted]) -> None:
        if trajectories:
            self._counters.add("submitted", len(trajectories))
            self._counters.add("dropped", len(trajectories), reason="the client is closed" if self._closed else "no room left in the inbox")
        if trajectories and self._options.strict:
            raise Unavailable(f"{len(trajectories)} trajectories found no room")

    def _ticket(self, trajectories: list[Submitted], wait_s: float | None) -> Ticket:
        ticket = Ticket(trajectories, self._options.deadline_s if wait_s is None else wait_s, self._terms())
        courier = self._ensure()
        if courier is None or self._closed or courier.away or not self._asking.acquire(blocking=False):
            ticket.trouble = "the client is closed" if self._closed else "the service is away" if courier and courier.away else "too many calls at once"
            self._left_out(self._offer(trajectories))
            ticket.finish()
        else:
            asking = self._asking
            ticket.future.add_done_callback(lambda _: asking.release())
            self._counters.add("submitted", len(trajectories))
            courier.inbox.ask(ticket)
        return ticket

    def _conclude(self, ticket: Ticket) -> Decisions:
        if not ticket.future.done() or ticket.working_s <= 0:
            self._counters.add("deadline_exceeded")
        decisions = ticket.decisions(self.view.epoch, self.view.seq)
        self._counters.add("unaudited", decisions.unaudited)
        if self._options.strict and (lost := [advice for advice in decisions.advices if advice.unaudited and not advice.held]):
            raise Unavailable(f"{len(lost)} trajectories were not judged: {lost[0].reason}")
        return decisions

    def _flushed(self, done: bool) -> bool:
        stats = self.stats
        if self._options.strict and not done:
            raise Unavailable(f"not everything was sent or kept in time: {stats.trouble or stats.reasons[-1:]}")
        if self._options.strict and (stats.rejected or stats.withheld):
            raise BadSubmission(f"{stats.rejected + stats.withheld} trajectories were not accepted: {'; '.join(stats.reasons)}")
        return done

    def _close(self, timeout_s: float) -> bool:
        self._closed = True
        courier, self._courier = self._courier, None
        steps, self._steps = self._steps, None
        end = time.monotonic() + timeout_s
        reported = steps.flush(timeout_s / 2) if steps else True
        if steps:
            steps.leave()
        return (courier.close(max(0.0, end - time.monotonic())) if courier else True) and reported

    # --- other processes ----------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {"options": self._options, "saved": self.view.saved()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._options = state["options"]
        self._begin()
        if state["saved"].epoch and not self.view.epoch:
            self.view.restored(state["saved"])

    def _forked(self) -> None:
        """In the child: threads and sockets are the parent's, and so is what waits to be sent; the view is as good as ours."""
        courier, self._courier = self._courier, None
        self._steps = None
        self._counters, self._starting, self._asking = Counters(), threading.Lock(), threading.BoundedSemaphore(TICKETS)
        if self._finalizer is not None:
            self._finalizer.detach()
        if courier is not None:
            courier.forget()
            _parents.append(courier)


_fail_mode = fail_mode


class Client(_Base):
    """For a training loop in plain threads. No method raises unless `strict`, whatever the service does."""

    def submit(self, trajectories: Iterable[Submitted] | Submitted) -> None:
        """Hand over trajectories (dicts, `Posted`, or lines as bytes) and go on; they must not be changed afterwards.

        Costs the time to append to a list. Only when the background cannot keep up does it wait, at most `deadline_s`;
        what finds no room by then is dropped and counted.
        """
        rest, end = self._offer(_listed(trajectories)), time.monotonic() + self._options.deadline_s
        while rest and not self._closed and (left_s := end - time.monotonic()) > 0:
            if courier := self._courier:
                courier.inbox.wait_room(left_s)
            rest = self._offer(rest)
        self._left_out(rest)

    def decide(self, trajectories: Iterable[Submitted] | Submitted, wait_s: float | None = None) -> Decisions:
        """Post, and have the advice for each within `deadline_s` (or within `wait_s`, where given), whatever the service does.

        What was not judged by then comes back unaudited, as the fail mode says; it is audited all the same, later.
        """
        ticket = self._ticket(_listed(trajectories), wait_s)
        if ticket.submitted and not ticket.future.done():
            _wait(ticket)
        return self._conclude(ticket)

    def flush(self, timeout_s: float = 10.0, *, delivered: bool = False) -> bool:
        """Whether everything handed over is with the service or, unless `delivered`, on disk; waits for at most `timeout_s`."""
        courier = self._courier
        return self._flushed(courier.flush(timeout_s, delivered=delivered) if courier else True)

    def close(self, timeout_s: float = 10.0) -> bool:
        """Flush and end; at most `timeout_s`. A closed client drops and counts what it is given."""
        return self._flushed(self._close(timeout_s))

    def __enter__(self) -> Self:
        self._ensure()  # so that the first `decide` need not wait for our threads
        return self

    def __exit__(self, *_: object) -> None:
        self._close(10.0)


class AsyncClient(_Base):
    """The same for a training loop on an event loop, which it never blocks."""

    async def submit(self, trajectories: Iterable[Submitted] | Submitted) -> None:
        """As `Client.submit`."""
        rest, end = self._offer(_listed(trajectories)), time.monotonic() + self._options.deadline_s
        while rest and not self._closed and time.monotonic() < end:
            await asyncio.sleep(ROOM_S)
            rest = self._offer(rest)
        self._left_out(rest)

    async def decide(self, trajectories: Iterable[Submitted] | Submitted, wait_s: float | None = None) -> Decisions:
        """As `Client.decide`."""
        ticket = self._ticket(_listed(trajectories), wait_s)
        if ticket.submitted and not ticket.future.done():
            await asyncio.wait((asyncio.wrap_future(ticket.future),), timeout=max(0.0, ticket.left_s))
        return self._conclude(ticket)

    async def flush(self, timeout_s: float = 10.0, *, delivered: bool = False) -> bool:
        """As `Client.flush`."""
        courier = self._courier
        return self._flushed(await on_daemon_thread(lambda: courier.flush(timeout_s, delivered=delivered)) if courier else True)

    async def close(self, timeout_s: float = 10.0) -> bool:
        """As `Client.close`."""
        return self._flushed(await on_daemon_thread(lambda: self._close(timeout_s)))

    async def __aenter__(self) -> Self:
        self._ensure()
        return self

    async def __aexit__(self, *_: object) -> None:
        await on_daemon_thread(lambda: self._close(10.0))


def _listed(trajectories: Any) -> list[Submitted]:
    """One alone is taken as such: iterating it would give its keys or its bytes. What is neither is refused later, with a count."""
    alone = isinstance(trajectories, Mapping | Posted | bytes | bytearray | str) or not isinstance(trajectories, Iterable)
    return [trajectories] if alone else list(trajectories)


def _wait(ticket: Ticket) -> None:
    try:
        ticket.future.result(max(0.0, ticket.left_s))
    except TimeoutError:
        return


def _close_all() -> None:
    """At the end of the process: what is in memory goes to the service or to disk, in bounded time."""
    end = time.monotonic() + EXIT_S
    for client in list(_living):
        client._close(max(0.2, end - time.monotonic()))


def _close_at_end_of_worker() -> None:
    """Children of multiprocessing run no atexit functions, but finalizers of their own."""
    if (util := sys.modules.get("multiprocessing.util")) is not None:
        util.Finalize(None, _close_all, exitpriority=100)


def _after_fork() -> None:
    for client in list(_living):
        client._forked()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_after_fork)
