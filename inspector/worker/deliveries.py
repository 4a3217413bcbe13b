"""The task of those who deliver to webhooks, apart from audits: a receiver that is slow holds up nobody else."""

from __future__ import annotations

import logging
import threading

from celery import Celery

from inspector import logs, queue
from inspector.egress import Egress
from inspector.queue import Doorbell
from inspector.settings import load
from inspector.store.session import connect
from inspector.webhooks.delivering import Deliverer

VISIT_S = 20.0
THREADS = 4  # at once, in one process
celery: Celery = queue.application(tasks=__name__)
_opening = threading.Lock()
_opened: tuple[Deliverer, Doorbell] | None = None


def opened() -> tuple[Deliverer, Doorbell]:
    """What this process works with, opened at its first task."""
    global _opened
    with _opening:
        if _opened is None:
            settings = load()
            logs.configure(settings.log_level)
            logging.getLogger("httpx").setLevel(logging.WARNING)  # it tells of every call
            deliverer = Deliverer(connect(settings.database_url, pool_size=THREADS), Egress.of(settings), settings.webhook_key)
            _opened = deliverer, Doorbell(celery, settings.redis_url, queue.DELIVER)
        return _opened


@celery.task(name=queue.DELIVER)
def deliver() -> None:
    """Post whatever is due. May run twice, and at the same time elsewhere."""
    deliverer, bell = opened()
    bell.heard()
    deliverer.drain(VISIT_S)
