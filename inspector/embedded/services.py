"""The commands and the environment of our own processes: API, workers, beat and dashboard."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from inspector.embedded.child import Program
from inspector.embedded.processes import Ladder, Rung
from inspector.queue import QUEUES, SANDBOX, WEBHOOKS
from inspector.settings import PREFIX, Settings

PYTHON = (sys.executable, "-P", "-m")  # -P: nothing in the current folder passes for one of our packages
GRACE_S = 2  # long polls do not end by themselves, and uvicorn waits for them
SERVER_STOP: Ladder = (Rung(signal.SIGTERM, GRACE_S + 8), Rung(signal.SIGKILL, 5))
# Warm, which lets a block of checks end; cold, which ends its pool; then hard.
WORKER_STOP: Ladder = (Rung(signal.SIGTERM, 20), Rung(signal.SIGQUIT, 5), Rung(signal.SIGKILL, 5))


def variables(settings: Settings) -> dict[str, str]:
    """All settings as the variables that `settings.load` reads."""
    fields = msgspec.structs.asdict(settings)
    limits = msgspec.structs.asdict(fields.pop("limits"))
    ours = {PREFIX + name.upper(): str(value) for name, value in fields.items()}
    return ours | {f"{PREFIX}LIMIT_{name.upper()}": str(value) for name, value in limits.items()}


def environment(settings: Settings, folder: Path) -> dict[str, str]:
    """Our own environment, which may hold secrets that settings refer to, with these settings, and the broker of last resort."""
    return dict(os.environ) | variables(settings) | {PREFIX + "BROKER_DIR": str(folder / "broker")}


def api(settings: Settings, folder: Path, processes: int = 1) -> Program:
    command = [*PYTHON, "uvicorn", "inspector.api:create_app", "--factory", *_uvicorn(settings.host, settings.port, settings), "--workers", str(processes)]
    return Program(name="api", command=command, environment=environment(settings, folder), folder=folder, ladder=SERVER_STOP)


def worker(settings: Settings, folder: Path) -> Program:
    options = ["--pool", "prefork", "--concurrency", str(settings.workers), "--queues", ",".join(QUEUES.values()), "--without-gossip", "--without-mingle"]
    command = [*_celery(), "worker", *options, "--hostname", "audit@inspector", "--loglevel", settings.log_level]
    return Program(name="worker", command=command, environment=environment(settings, folder), folder=folder, ladder=WORKER_STOP)


def deliverer(settings: Settings, folder: Path) -> Program:
    """The one that posts to webhooks; in threads, since it mostly waits for others."""
    options = ["--pool", "threads", "--concurrency", "4", "--queues", WEBHOOKS, "--without-gossip", "--without-mingle"]
    command = [*_celery("deliveries"), "worker", *options, "--hostname", "webhooks@inspector", "--loglevel", settings.log_level]
    return Program(name=WEBHOOKS, command=command, environment=environment(settings, folder), folder=folder, ladder=WORKER_STOP)


def beat(settings: Settings, folder: Path) -> Program:
    """A process of its own: beat inside a worker outlives that worker's death and goes on publishing."""
    (folder / "beat").mkdir(exist_ok=True, mode=0o700)
    command = [*_celery(), "beat", "--schedule", str(folder / "beat" / "schedule"), "--loglevel", settings.log_level]
    return Program(name="beat", command=command, environment=environment(settings, folder), folder=folder)


def sandbox_worker(settings: Settings, folder: Path, api_url: str, key: str) -> Program:
    """The one that starts foreign code: it asks the API for work, and gets no address of a database or a store."""
    options = ["--pool", "prefork", "--concurrency", "1", "--queues", SANDBOX, "--without-gossip", "--without-mingle"]
    command = [*_celery("sandboxed"), "worker", *options, "--hostname", "sandbox@inspector", "--loglevel", settings.log_level]
    given = msgspec.structs.replace(
        settings,
        database_url="",
        store_url="",
        webhook_key="",
        api_url=api_url,
        prober_key=key,
        sandbox_folder=settings.sandbox_folder or str(folder / "sandbox"),
    )
    surroundings = _foreign() | variables(given) | {PREFIX + "BROKER_DIR": str(folder / "broker")}
    return Program(name=SANDBOX, command=command, environment=surroundings, folder=folder, ladder=WORKER_STOP)


def lacks_for_boxes() -> str:
    """Why no sandbox can be made on this machine; empty where one can."""
    opening = importlib.import_module("inspector.sandbox.opening")
    missing: Mapping[str, str] = opening.open_backend().capabilities.missing
    return "; ".join(f"{what}: {why}" for what, why in missing.items())


def dashboard(settings: Settings, folder: Path, api_url: str) -> Program:
    """It speaks HTTP with the API and gets no address of a database, a broker or a store."""
    command = [*PYTHON, "uvicorn", "dashboard.asgi:app", *_uvicorn(settings.host, settings.dashboard_port, settings)]
    return Program(name="dashboard", command=command, environment=_dashboard_environment(settings, api_url), folder=folder, ladder=SERVER_STOP)


HOSTS = PREFIX + "DASHBOARD_HOSTS"  # the dashboard's own setting: further names under which it may be reached


def has_dashboard() -> bool:
    """Whether its extra is installed."""
    return importlib.util.find_spec("streamlit") is not None


def _dashboard_environment(settings: Settings, api_url: str) -> Mapping[str, str]:
    kept = msgspec.structs.replace(settings, database_url="", redis_url="", store_url="", prober_key="", webhook_key="")
    quiet = {"STREAMLIT_SERVER_HEADLESS": "true", "STREAMLIT_BROWSER_GATHER_USAGE_STATS": "false"}
    return _foreign(HOSTS) | variables(kept) | quiet | {PREFIX + "API_URL": api_url}


def _foreign(*kept: str) -> dict[str, str]:
    """Our own environment without what is meant for us, which may be secrets."""
    return {name: value for name, value in os.environ.items() if not name.startswith(PREFIX) or name in kept}


def _uvicorn(host: str, port: int, settings: Settings) -> list[str]:
    options = ["--loop", "uvloop", "--http", "httptools", "--timeout-graceful-shutdown", str(GRACE_S), "--no-access-log", "--no-server-header"]
    return [*options, "--host", host, "--port", str(port), "--log-level", settings.log_level]


def _celery(tasks: str = "tasks") -> list[str]:
    return [*PYTHON, "celery", "-A", f"inspector.worker.{tasks}"]
