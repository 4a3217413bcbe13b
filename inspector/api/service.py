"""What one API process holds while it serves."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import redis
import structlog
from sqlalchemy import Engine

from inspector import audit, catalog, policy, queue
from inspector.api.access import Keys
from inspector.api.batcher import Accepted, Batcher, Pace
from inspector.api.desk import Desk
from inspector.api.hub import Hub
from inspector.api.metrics import Metrics
from inspector.api.rates import Rates
from inspector.api.threads import CONNECTIONS, Threads
from inspector.bodies import InFlight
from inspector.catalog import Catalog
from inspector.errors import Unavailable
from inspector.intake import Intake, Posting, Project
from inspector.queue import Doorbell
from inspector.settings import Settings
from inspector.store import decisions, probes, segments, selections, work
from inspector.store.decisions import Head
from inspector.store.probes import ProbeState
from inspector.store.segments import SegmentReader, SegmentWriter
from inspector.store.session import connect, transaction
from inspector.store.work import Lane, Waiting

log = structlog.get_logger()
OPEN_FILES = 8192  # a long poll holds one


class Service:
    """The parts, wired; made inside the event loop that serves."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self.settings, self.metrics = settings, metrics
        self.threads = Threads()
        self.engine = connect(settings.database_url, pool_size=CONNECTIONS // 2)
        self.root = settings.store_path
        segments.prepare(self.root)
        self.writer = SegmentWriter(self.root, max_bytes=settings.segment_bytes)
        self.reader = SegmentReader(self.root)
        self.catalog: Catalog = catalog.load()
        self.policy = policy.load(settings.policy_file)
        celery = queue.application(settings)
        self.doorbell = Doorbell(celery, settings.redis_url)
        self.probe_bell = Doorbell(celery, settings.redis_url, queue.PROBE, expires_s=queue.PROBE_BELL_S)
        with transaction(self.engine) as session:
            selection = selections.ensure(session, audit.selected(self.catalog.select(only=settings.checks.split())))
        self.intake = Intake(self.engine, self.writer, self.doorbell, selection, settings.limits)
        self.budget = InFlight(settings.limits.in_flight_bytes)
        self.keys = Keys(self.engine, self.threads)
        self.rates = Rates(settings.limits.requests_per_minute, settings.redis_url, self.threads)
        self.hub = Hub(self.engine, settings.database_url, settings.redis_url, self.threads, settings.limits.waiters)
        self.desk = Desk(self.engine, self.threads, self.hub)
        pace = Pace(settings.flush_ms / 1000, settings.flush_posts, settings.flush_bytes)
        self.batcher = Batcher(self.accept_singles, self.threads, pace)
        self._measure()

    def start(self) -> None:
        """Begin to listen; SIGTERM wakes those who wait before the server waits for them."""
        raise_open_files()
        gc.collect()
        gc.freeze()  # what was imported stays: no collection while bodies are read walks it again
        self.hub.start()
        on_end(self.hub.close)

    async def stop(self) -> None:
        """End in order: nobody waits, what was taken in is acknowledged, and nothing stays open."""
        self.hub.close()
        await self.batcher.drain()
        await self.hub.stop()
        self.threads.close()
        self.writer.close()
        self.engine.dispose()

    def accept(self, project: Project, posting: Posting) -> Accepted:
        """Take lines in, and say how far the project's feed is; blocks."""
        began = time.perf_counter()
        receipts = self.intake.accept(project, posting)
        self.metrics.ingest.observe(time.perf_counter() - began)
        self.metrics.count(receipts)
        return Accepted(receipts, self.head(project.id))

    def accept_singles(self, project: Project, lines: Sequence[bytes]) -> Accepted:
        """The lines of single posts."""
        accepted = self.accept(project, Posting(lines, {}, None))
        log.info("single posts", project=str(project.uuid), lines=len(lines))
        return accepted

    def head(self, project: int) -> Head | None:
        """How far the feed is; None where that cannot be found out, which is no reason to fail what was done."""
        try:
            with transaction(self.engine) as session:
                return decisions.head(session, project)
        except Unavailable:
            return None

    def waiting_work(self) -> tuple[Waiting, Waiting] | None:
        """How much waits for an audit, and how much for late checks; None where the database is away."""
        try:
            with transaction(self.engine) as session:
                return work.waiting(session), work.waiting(session, lane=Lane.LATE)
        except Unavailable:
            return None

    def waiting_probes(self) -> dict[ProbeState, int] | None:
        """How many probes wait and run; None where the database is away."""
        try:
            with transaction(self.engine) as session:
                return probes.waiting(session)
        except Unavailable:
            return None

    def troubles(self) -> tuple[list[str], list[str]]:
        """(reasons why no work can be taken, what is away but can be done without); blocks."""
        red, amber = [], []
        if reason := database_trouble(self.engine):
            red.append(reason)
        if reason := store_trouble(self.root):
            red.append(reason)
        if self.settings.redis_url and (reason := redis_trouble(self.settings.redis_url)):
            amber.append(reason)
        return red, amber

    def _measure(self) -> None:
        metrics = self.metrics
        metrics.gauge("inspector_in_flight_bytes", "Bytes of bodies in this process", lambda: self.budget.used)
        metrics.gauge("inspector_waiters", "Long polls", lambda: self.hub.waiting)
        metrics.gauge("inspector_feed_wakeups_total", "Long polls woken by news", lambda: self.hub.wakes)
        metrics.gauge("inspector_bell_failures_total", "Bells that could not be rung", lambda: self.doorbell.failures + self.probe_bell.failures)
        metrics.gauge("inspector_rate_failures_total", "Requests let through uncounted", lambda: self.rates.failures)
        metrics.watch_work(self.waiting_work)
        metrics.watch_probes(self.waiting_probes)


def database_trouble(engine: Engine) -> str | None:
    """Why the database cannot be used."""
    try:
        with transaction(engine) as session:
            decisions.heads(session, ())
    except Unavailable as error:
        return error.reason
    return None


ROOM_BYTES = 8 << 20


def store_trouble(root: Path) -> str | None:
    """Why nothing can be stored: found out by storing something."""
    try:
        with tempfile.NamedTemporaryFile(dir=root, prefix=".ready-") as file:
            file.write(bytes(64 << 10))
            file.flush()
            os.fsync(file.fileno())
        room = os.statvfs(root)
    except OSError as error:
        return f"the store cannot be written: {error.strerror}"
    free = room.f_bavail * room.f_frsize
    return f"the store has {free} bytes left" if free < ROOM_BYTES else None


def redis_trouble(redis_url: str) -> str | None:
    """Why Redis cannot be used; the service goes on without it."""
    try:
        queue.redis_client(redis_url).ping()
    except (redis.RedisError, OSError) as error:
        return f"Redis is away: {type(error).__name__}"
    return None


def raise_open_files() -> None:
    """As many open files as long polls may need."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def on_end(act: Callable[[], None]) -> None:
    """Call `act` in this loop when SIGTERM or SIGINT comes, before the server's own handler."""
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        before = signal.getsignal(number)

        def first_ours(received: int, frame: FrameType | None, before: Any = before) -> None:
            loop.call_soon_threadsafe(act)
            if callable(before):
                before(received, frame)

        if callable(before):  # somebody's who ends the process in good order; otherwise there is nothing to come before
            signal.signal(number, first_ours)
