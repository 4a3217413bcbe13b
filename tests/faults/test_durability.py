"""Power cuts: what the disk was never told to keep is taken away, and nothing that was acknowledged is missing.

With commit and flush swapped, so that an acknowledgement overtakes the flush, the same comparison must find losses.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults import power
from tests.faults.ledger import Ledger
from tests.faults.service import Service, campaign, serving

SEED = 31
WRITER = """
import os, sys
def flush_folder(path):
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
store = sys.argv[1]
for name in ("kept", "nameless"):
    os.mkdir(f"{store}/{name}")
    descriptor = os.open(f"{store}/{name}/a.seg", os.O_WRONLY | os.O_CREAT)
    os.write(descriptor, b"flushed")
    os.fdatasync(descriptor)
    os.write(descriptor, b", and more")
flush_folder(f"{store}/kept")
flush_folder(store)
"""


def test_the_cut_takes_what_was_not_flushed_and_files_whose_name_was_not(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    environment = dict(os.environ) | power.forgetful(tmp_path, swapped=False)
    subprocess.run([sys.executable, "-c", WRITER, str(store)], env=environment, timeout=60, check=True)
    assert power.cut(Path(environment[power.NOTES]), store) > 0
    assert {str(path.relative_to(store)): path.read_bytes() for path in store.rglob("*.seg")} == {"kept/a.seg": b"flushed"}


def cut(service: Service, rng: random.Random, ledger: Ledger) -> None:
    service.cut_power_of_api()
    service.start_api()


@pytest.mark.slow
def test_power_cuts_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        assert campaign(service, [cut] * 8, seed=SEED, trajectories=8_000) == []


@pytest.mark.slow
def test_one_power_cut_finds_losses_where_commit_and_flush_are_swapped(tmp_path: Path) -> None:
    with serving(tmp_path, swapped=True) as service:
        complaints = campaign(service, [], seed=SEED, trajectories=500)
    assert any(complaint.startswith("lost: ") for complaint in complaints), complaints
