"""The task of sandbox workers, apart from those of workers that hold the database's address."""

from __future__ import annotations

import logging
import os
import tempfile
from pathlib import Path

import structlog
from celery import Celery
from celery.signals import worker_init, worker_process_init, worker_process_shutdown

from inspector import logs, queue
from inspector.client import Api
from inspector.egress import Egress
from inspector.queue import Doorbell
from inspector.sandbox import stage
from inspector.sandbox.opening import open_backend
from inspector.sandbox.protocol import Broken
from inspector.sandbox.reaper import reap
from inspector.settings import BadSetting, Settings, load
from inspector.worker.prober import Prober

log = structlog.get_logger()
VISIT_S = 60.0  # a child that grew is replaced between two visits
CALL_S = 30.0
celery: Celery = queue.application(tasks=__name__)
_opened: tuple[Prober, Doorbell] | None = None


@worker_init.connect
def _ready(**_: object) -> None:
    """End the worker where the machine gives no boxes, before it claims anything; else clear away what one that was killed left of its own."""
    if missing := open_backend().capabilities.missing:
        raise SystemExit(f"no probes here: this machine gives no box: {'; '.join(f'{what}: {why}' for what, why in missing.items())}")
    _reap()


@worker_process_shutdown.connect
def _leave(**_: object) -> None:
    """A pool child ends without Python's own clearing up."""
    stage.clear(stage.PLACE / stage.owner_name())


@worker_process_init.connect
def _forget(**_: object) -> None:
    """A pool child must not share what its parent opened."""
    global _opened
    _opened = None


def _reap() -> None:
    try:
        for owner in reap():
            log.warning("cleared away what a dead owner of boxes left", owner=owner)
    except Broken as error:
        log.error("what dead owners of boxes left could not be cleared away", reason=str(error))


def opened() -> tuple[Prober, Doorbell]:
    """What this process works with, opened at its first task."""
    global _opened
    if _opened is None:
        _reap()  # of a pool child that was killed, whose place this one took
        settings = load()
        logs.configure(settings.log_level)
        logging.getLogger("httpx").setLevel(logging.WARNING)  # it tells of every call
        _opened = prober(settings), Doorbell(celery, settings.redis_url, queue.PROBE, expires_s=queue.PROBE_BELL_S)
    return _opened


def prober(settings: Settings) -> Prober:
    """A worker's prober. Raises BadSetting where it is not told whom to ask."""
    if not settings.api_url or not settings.prober_key:
        raise BadSetting("a sandbox worker needs INSPECTOR_API_URL and INSPECTOR_PROBER_KEY")
    room = Path(settings.sandbox_folder or Path(tempfile.gettempdir()) / f"inspector-packages-{os.getuid()}")
    return Prober(Api(settings.api_url, settings.prober_key, timeout_s=CALL_S), open_backend(), room, Egress.of(settings))


@celery.task(name=queue.PROBE)
def probe() -> None:
    """Work on whatever probe is due. May run twice, and at the same time elsewhere."""
    worker, bell = opened()
    bell.heard()
    if worker.drain(VISIT_S):
        bell.ring()
