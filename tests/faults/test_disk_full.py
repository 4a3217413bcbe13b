"""A full disk: 507 and a red /readyz, nothing acknowledged is lost, reading goes on, and posting too as soon as there is room."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import msgspec
import pytest

from tests.faults.ledger import Ledger, until
from tests.faults.service import RECOVERY_S, SETTINGS, Service, campaign, serving

DISK = "64m"
TRIES = 100
ROOM_BYTES = 64 << 10  # at most left when the disk fills: the next posts run into its end somewhere inside a stretch


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    try:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)], capture_output=True, text=True, timeout=30, check=False)
    except FileNotFoundError:
        pytest.skip("no program mount here")
    if mounted.returncode:
        pytest.skip(f"a small disk needs the right to mount one: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], timeout=30, check=True)


def full(service: Service, rng: random.Random, ledger: Ledger) -> None:
    """Fill the disk up to a few bytes under posts, and make room again."""
    refused = ledger.answers[507]
    ledger.allow(5_000)
    filler = service.store / "filler"
    _fill(filler, rng.randint(0, ROOM_BYTES))
    try:
        ledger.until(lambda so_far: so_far.answers[507] >= refused + 2, RECOVERY_S, "posts are answered 507")
        until(lambda: service.readiness() == 503, RECOVERY_S, "/readyz is red")
        _read_one(service, rng, ledger)
    finally:
        filler.unlink()
    until(service.ready, RECOVERY_S, "/readyz is green again")
    stored = len(ledger)
    ledger.until(lambda so_far: len(so_far) > stored, RECOVERY_S, "posts are acknowledged again")


def _fill(filler: Path, room: int) -> None:
    """Take all but `room` bytes; posts go on meanwhile, so that what was free a moment ago may be taken."""
    with filler.open("wb") as file:
        for _ in range(TRIES):
            found = os.fstatvfs(file.fileno())
            with suppress(OSError):
                os.posix_fallocate(file.fileno(), 0, max(found.f_bavail * found.f_frsize - room, 1))
                return
    raise AssertionError(f"the disk could not be filled in {TRIES} tries")


def _read_one(service: Service, rng: random.Random, ledger: Ledger) -> None:
    promised = rng.choice(list(ledger.acknowledged.values()))
    answer = httpx.get(f"{service.url}/v1/trajectories/{promised.key}/raw", headers={"Authorization": f"Bearer {service.keys['owner']}"}, timeout=30)
    assert hashlib.sha256(answer.content).digest() == promised.sha256, answer.status_code


@pytest.mark.slow
@pytest.mark.parametrize(
    ("swapped", "moments", "trajectories"), [pytest.param(False, 20, 20_000, id="in order"), pytest.param(True, 2, 1_000, id="commit and flush swapped")]
)
def test_a_full_disk_costs_nothing_that_was_acknowledged(disk: Path, tmp_path: Path, swapped: bool, moments: int, trajectories: int) -> None:
    settings = msgspec.structs.replace(SETTINGS, store_url=f"file://{disk / 'store'}")
    with serving(tmp_path / "service", settings=settings, swapped=swapped) as service:
        complaints = campaign(service, [full] * moments, seed=7, trajectories=trajectories)
    assert any(complaint.startswith("lost: ") for complaint in complaints) is swapped, complaints
    assert swapped or complaints == []
