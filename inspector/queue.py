"""The Celery application and the doorbell: a message has no payload, the work list in Postgres is the truth."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from pathlib import Path

import redis
from celery import Celery
from kombu.exceptions import OperationalError

from inspector.settings import Settings, load

AUDIT = "inspector.audit"
LATE = "inspector.late"
SWEEP = "inspector.sweep"
RETAIN = "inspector.retain"
LEARN = "inspector.learn"
CALIBRATE = "inspector.calibrate"
PROBE = "inspector.probe"
DELIVER = "inspector.deliver"
QUEUES = {AUDIT: "audit", LATE: "late"}  # of workers that hold the database's address
SANDBOX, WEBHOOKS = "sandbox", "webhooks"
PROBE_BELL_S = 60.0
BELL = "inspector:bell:audit"
BELL_TTL_MS = 2000  # a bell that was lost with its worker keeps others silent for no longer than this


def application(settings: Settings | None = None, tasks: str = "inspector.worker.tasks") -> Celery:
    """The application that workers, beat and doorbells share; `tasks` is the module of those that a worker of it runs."""
    settings = settings or load()
    app = Celery("inspector", include=[tasks])
    app.conf.update(
        broker_url=settings.redis_url or _filesystem_url(),
        broker_transport_options={} if settings.redis_url else _filesystem_options(),
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        task_default_queue="audit",
        worker_prefetch_multiplier=1,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_hijack_root_logger=False,
        worker_max_memory_per_child=500_000,  # kB; a child that grew is replaced between two tasks
        beat_schedule={
            "sweep": {"task": SWEEP, "schedule": settings.sweep_s, "options": {"expires": settings.sweep_s * 2}},
            "retain": {"task": RETAIN, "schedule": settings.retain_every_s, "options": {"expires": settings.retain_every_s, "queue": QUEUES[LATE]}},
            "calibrate": {
                "task": CALIBRATE,
                "schedule": settings.calibrate_every_s,
                "options": {"expires": settings.calibrate_every_s, "queue": QUEUES[LATE]},
            },
            "deliver": {"task": DELIVER, "schedule": settings.sweep_s, "options": {"expires": settings.sweep_s, "queue": WEBHOOKS}},
            "learn": {"task": LEARN, "schedule": settings.learn_every_s, "options": {"expires": settings.learn_every_s, "queue": QUEUES[LATE]}},
        },
    )
    return app


def _folder() -> Path:
    return Path(os.environ.get("INSPECTOR_BROKER_DIR", Path(tempfile.gettempdir()) / f"inspector-broker-{os.getuid()}"))


def _filesystem_url() -> str:
    return "filesystem://"


def _filesystem_options() -> dict[str, object]:
    folder = _folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return {"data_folder_in": str(folder), "data_folder_out": str(folder), "control_folder": str(folder / "control"), "polling_interval": 0.1}


class Doorbell:
    """Rings for the workers of a queue after a commit. A bell that cannot be rung is counted, never raised: the sweep finds the work."""

    def __init__(self, celery: Celery, redis_url: str, task: str = AUDIT, *, expires_s: float | None = None) -> None:
        self._expires_s = expires_s  # of a message that nobody hears: where visits are long, bells would pile up
        self._celery, self._task, self._queue = celery, task, {**QUEUES, DELIVER: WEBHOOKS}.get(task, SANDBOX)
        self._key = f"inspector:bell:{self._queue}"
        self._redis = redis_client(redis_url) if redis_url else None
        self._lock = threading.Lock()
        self._rung_at = 0.0
        self.failures = 0

    def ring(self) -> bool:
        """Ring unless a bell is already waiting; False when it could not be rung."""
        try:
            if self._waiting():
                return True
            self._celery.send_task(self._task, queue=self._queue, retry=False, ignore_result=True, expires=self._expires_s)
        except (OperationalError, redis.RedisError, OSError):
            self.failures += 1
            return False
        return True

    def heard(self) -> None:
        """A worker has come: from now on a new bell is a new visit. Call it before claiming."""
        if self._redis is None:
            return
        try:
            self._redis.delete(self._key)
        except redis.RedisError:
            self.failures += 1

    def _waiting(self) -> bool:
        if self._redis is not None:
            return not self._redis.set(self._key, b"1", nx=True, px=BELL_TTL_MS)
        with self._lock:  # without Redis, bells are only thinned out within this process
            now = time.monotonic()
            if now - self._rung_at < 0.05:
                return True
            self._rung_at = now
        return False


def redis_client(redis_url: str) -> redis.Redis:
    """A client with time limits."""
    return redis.Redis.from_url(plain_url(redis_url), socket_timeout=1.0, socket_connect_timeout=1.0)


def plain_url(redis_url: str) -> str:
    """As Redis's own client wants it: Celery calls a socket `redis+socket://`."""
    return redis_url.replace("redis+socket://", "unix://", 1)
