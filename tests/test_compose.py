"""What compose.yaml and the Dockerfile promise of the containers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

ROOT = Path(__file__).parent.parent
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
LINES = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
SANDBOX = "sandbox-worker"
lasting = pytest.mark.parametrize("name", [name for name, part in SERVICES.items() if part["restart"] != "no"])
every = pytest.mark.parametrize("name", list(SERVICES))
ordinary = pytest.mark.parametrize("name", [name for name in SERVICES if name != SANDBOX])


def test_the_whole_service_is_there():
    assert set(SERVICES) == {"postgres", "redis", "migrate", "api", "audit-worker", "webhook-worker", SANDBOX, "beat", "dashboard"}


@every
def test_every_root_file_system_is_read_only(name):
    assert SERVICES[name]["read_only"] is True
    assert SERVICES[name]["tmpfs"]


@every
def test_no_container_starts_with_capabilities_it_was_not_given(name):
    assert SERVICES[name]["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in SERVICES[name]["security_opt"]
    assert not SERVICES[name].get("privileged")


@ordinary
def test_every_part_but_the_sandbox_runs_as_a_plain_user(name):
    user, _, group = SERVICES[name]["user"].partition(":")
    assert int(user) > 0
    assert int(group) > 0
    assert "cap_add" not in SERVICES[name]


@lasting
def test_every_lasting_part_says_whether_it_is_well(name):
    assert SERVICES[name]["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")


@every
def test_every_image_is_pinned_to_a_version(name):
    repository, _, tag = SERVICES[name]["image"].rpartition(":")
    assert repository
    assert re.search(r"\d+\.\d+", tag)


def test_every_stage_builds_on_a_pinned_image():
    bases = [line.split()[1] for line in LINES if line.startswith("FROM ")]
    stages = {line.split()[3] for line in LINES if line.startswith("FROM ")}
    assert all(base in stages or re.search(r":\d+\.\d+", base) for base in bases)
    assert {part["build"]["target"] for part in SERVICES.values() if "build" in part} <= stages


def test_images_install_only_what_the_lock_names():
    installs = [step for line in LINES for step in line.split("&&") if "pip install" in step]
    assert installs
    assert all("requirements.lock" in step or "--require-hashes" in step for step in installs)


def test_the_sandbox_worker_holds_neither_database_nor_store_and_the_key_of_its_role_alone():
    part = SERVICES[SANDBOX]
    assert part["secrets"] == ["prober_key"]
    assert not part.get("volumes")
    assert {name for name in part["environment"] if re.search("DATABASE|STORE", name)} == set()
    assert set(part["networks"]).isdisjoint(SERVICES["postgres"]["networks"])
    assert set(part["networks"]) & set(SERVICES["api"]["networks"]) == {"work"}
    assert part["image"] != SERVICES["api"]["image"]


def test_the_dashboard_reaches_the_api_alone():
    part = SERVICES["dashboard"]
    assert not part.get("secrets")
    assert set(part["networks"]).isdisjoint(SERVICES["postgres"]["networks"])
    assert set(part["networks"]) & set(SERVICES["api"]["networks"])


def test_only_the_database_itself_knows_the_superuser():
    assert [name for name, part in SERVICES.items() if "postgres_password" in part.get("secrets", [])] == ["postgres"]


def test_secrets_come_as_files_and_never_in_the_environment():
    written = [
        f"{name}: {variable}" for name, part in SERVICES.items() for variable in part.get("environment", {}) if re.search("PASSWORD|SECRET|KEY", variable)
    ]
    assert [one for one in written if not one.endswith("_FILE")] == []
    assert all("file" in secret for secret in COMPOSE["secrets"].values())


def test_ports_open_on_this_machine_alone():
    ports = [port for part in SERVICES.values() for port in part.get("ports", [])]
    assert len(ports) == 2
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_compose_understands_the_file():
    if (program := shutil.which("docker-compose")) is None:
        pytest.skip("no docker-compose here")
    checked = subprocess.run([program, "-f", "compose.yaml", "config", "--quiet"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert checked.returncode == 0, checked.stderr


def test_the_first_keys_of_an_installation_are_written_once(database, tmp_path):
    secret = tmp_path / "database_url"
    secret.write_text(database)
    keys = tmp_path / "keys"
    keys.mkdir()
    environment = {**os.environ, "INSPECTOR_DATABASE_URL_FILE": str(secret), "INSPECTOR_STORE_URL": f"file://{tmp_path}"}
    command = [sys.executable, "-c", "from inspector.cli import main; main()", *SERVICES["migrate"]["command"][1:-1], str(keys)]
    for _ in range(2):
        subprocess.run(command, env=environment, capture_output=True, timeout=120, check=True)
    written = msgspec.json.decode((keys / "keys.json").read_bytes(), type=dict[str, str])
    assert set(written) == {"trainer", "reviewer", "owner", "admin", "prober"}
    assert (keys / "keys.json").stat().st_mode & 0o077 == 0
