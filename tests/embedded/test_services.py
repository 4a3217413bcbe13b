"""What our own processes are given."""

from __future__ import annotations

from pathlib import Path

from inspector import settings
from inspector.embedded import services
from inspector.queue import QUEUES
from inspector.settings import Limits, Settings

SETTINGS = Settings(
    database_url="postgresql://me:secret@host/x",
    redis_url="redis://r",
    store_url="file:///s",
    webhook_key="secret key",
    egress_plain=True,
    workers=7,
    limits=Limits(waiters=3),
)


def test_settings_survive_the_way_through_the_environment(tmp_path: Path):
    assert settings.load(services.environment(SETTINGS, tmp_path)) == SETTINGS


def test_the_worker_and_beat_are_apart(tmp_path: Path):
    worker, beat = services.worker(SETTINGS, tmp_path), services.beat(SETTINGS, tmp_path)
    assert {"--without-gossip", "--without-mingle"} <= set(worker.command)
    assert not {"-B", "--beat"} & set(worker.command)
    assert worker.command[worker.command.index("--concurrency") + 1] == "7"
    assert beat.command[beat.command.index("--schedule") + 1] == str(tmp_path / "beat" / "schedule")


def test_the_dashboard_gets_no_address_of_database_broker_or_store(tmp_path: Path):
    given = services.dashboard(SETTINGS, tmp_path, "http://api").environment
    assert not any("secret" in value or value in ("redis://r", "file:///s") for value in given.values())
    assert given["INSPECTOR_API_URL"] == "http://api"


def test_one_worker_serves_every_queue(tmp_path: Path) -> None:
    command = services.worker(Settings(), tmp_path).command
    assert command[command.index("--queues") + 1].split(",") == list(QUEUES.values())


def test_deliveries_are_apart_from_audits(tmp_path: Path) -> None:
    given = services.deliverer(SETTINGS, tmp_path)
    assert given.command[given.command.index("--queues") + 1] not in QUEUES.values()
    assert settings.load(given.environment).webhook_key == "secret key"
    assert "secret" not in " ".join(given.command)


def test_the_sandbox_worker_gets_no_address_of_database_or_store(tmp_path: Path) -> None:
    given = services.sandbox_worker(SETTINGS, tmp_path, "http://api", "ins_key")
    assert not any("secret" in value or value == "file:///s" for value in given.environment.values())
    told = settings.load(given.environment)
    assert (told.api_url, told.prober_key, told.redis_url, told.database_url) == ("http://api", "ins_key", "redis://r", "")
    assert given.command[given.command.index("--queues") + 1] == "sandbox"
    assert "ins_key" not in " ".join(given.command)
