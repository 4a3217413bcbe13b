"""The tasks, by the names that messages carry; moving this file breaks no message in flight."""

from __future__ import annotations

import gc
import time

from celery import Celery
from celery.signals import worker_init, worker_process_init

from inspector import catalog, queue
from inspector.worker.house import House

VISIT_S = 4.0  # less than a sweep may wait for its turn before it expires
LATE_VISIT_S = 1.0
CONTAINERS = 100_000  # new ones between two looks for cycles; trajectories hold many and make none
celery: Celery = queue.application()
_house: House | None = None


@worker_init.connect
def _read_checks(**_: object) -> None:
    """Before children are forked: they share what costs most to read, and never look for cycles in it."""
    catalog.load()
    gc.collect()
    gc.freeze()


@worker_process_init.connect
def _forget(**_: object) -> None:
    """A pool child must not share what its parent opened."""
    global _house
    _house = None


def house() -> House:
    """What this process works with, opened at its first task."""
    global _house
    if _house is None:
        _house = House.open(celery)
        gc.set_threshold(CONTAINERS, 20, 20)
    return _house


@celery.task(name=queue.AUDIT)
def audit() -> None:
    """Audit whatever waits. May run twice, and at the same time elsewhere.

    It ends after a while, however much waits: sweeps go through the same queue, and a child that grew is replaced between two tasks.
    """
    house().bell.heard()
    end = time.monotonic() + VISIT_S
    house().auditor.drain(VISIT_S)
    if time.monotonic() >= end:
        house().bell.ring()


@celery.task(name=queue.LATE)
def late() -> None:
    """Run whatever late checks wait, for a short while: fast audits may share these workers."""
    house().late_bell.heard()
    end = time.monotonic() + LATE_VISIT_S
    house().late.drain(LATE_VISIT_S)
    if time.monotonic() >= end:
        house().late_bell.ring()


@celery.task(name=queue.RETAIN)
def retain() -> None:
    """Forget what is older than the operator keeps."""
    house().retain()


@celery.task(name=queue.LEARN)
def learn() -> None:
    """Learn what is ordinary in projects of which enough is new."""
    house().learn()


@celery.task(name=queue.CALIBRATE)
def calibrate() -> None:
    """Fit probabilities anew in projects where people judged enough."""
    house().calibrate()


@celery.task(name=queue.SWEEP)
def sweep() -> None:
    """Find what lost its worker or its bell, groups that nothing comes to any more, and late checks that are overdue."""
    house().sweep()
