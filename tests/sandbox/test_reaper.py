"""What a killed owner of boxes leaves is ended by the next one that starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from inspector.sandbox import stage
from inspector.sandbox.cgroups import tops
from inspector.sandbox.reaper import reap

OWNER = """
import sys
from pathlib import Path
from inspector.sandbox.opening import open_backend
backend = open_backend(Path(sys.argv[1]))
one, two = backend.create(session=True), backend.create()
one.run(["sh", "-c", "setsid sleep 300 & setsid sleep 300 &"])
print(one.name, flush=True)
two.run(["sleep", "300"], timeout_s=300)
"""


def traces(owner):
    groups = [path for top in tops() for path in top.rglob(f"{owner}-*")]
    processes = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit() and f"BOX={owner}".encode() in environ(entry)]
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if owner in line]
    return groups, processes, mounts, (stage.PLACE / owner).exists()


def environ(entry):
    try:
        return (entry / "environ").read_bytes()
    except OSError:
        return b""


@pytest.fixture
def killed(boxes, tmp_path):
    process = subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    name = process.stdout.readline().strip()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    return name.rpartition("-")[0]


def test_nothing_of_a_killed_owner_is_left(boxes, killed):
    groups, _, mounts, folder = traces(killed)
    assert groups
    assert mounts
    assert folder
    with boxes.create(session=True) as living:
        living.run(["sh", "-c", "sleep 300 &"])
        assert killed in reap()
        assert living.run(["echo", "alive"]).stdout == b"alive\n"
    assert traces(killed) == ([], [], [], False)
    assert killed not in reap()


def test_an_owner_that_took_the_number_of_a_dead_one_is_known_by_its_start(boxes):
    name, pid, start = stage.owner_name().split("-")
    old = stage.PLACE / f"{name}-{pid}-{int(start) - 1}"
    foreign = stage.PLACE / f"{'f' * 8}-{pid}-{start}"
    old.mkdir()
    foreign.mkdir()
    assert {old.name, foreign.name} & set(reap()) == {old.name}
    assert not old.exists()
    assert foreign.exists()
    foreign.rmdir()


def test_a_layer_that_was_half_copied_goes_with_its_owner(boxes, tmp_path):
    name, pid, start = stage.owner_name().split("-")
    store = tmp_path / "layers"
    (store / f".{name}-{pid}-{int(start) - 1}-00ff" / "work").mkdir(parents=True)
    (store / f".{name}-{pid}-{start}-00ff").mkdir()
    (store / "0123").mkdir()
    reap(tmp_path)
    assert sorted(os.listdir(store)) == [f".{name}-{pid}-{start}-00ff", "0123"]
