"""A sandbox worker beside the whole service: probes are worked off, and outlive the worker that is killed in the middle of one."""

from __future__ import annotations

import hashlib
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from inspector.client import Api
from inspector.embedded import Stack, services
from inspector.embedded.processes import session_of
from inspector.packing import pack
from inspector.sandbox import cgroups, stage
from inspector.sandbox.launch import MARK
from inspector.settings import Settings

PARTS = ("postgres", "redis", "migrations", "keys", "api", "worker", "sandbox", "beat")
VERSION = "/v1/environments/acme/rows/versions/1"
pytestmark = pytest.mark.skipif(bool(services.lacks_for_boxes()), reason="this machine gives no box")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with Stack(tmp_path_factory.mktemp("stack") / "data", parts=PARTS, settings=Settings(lease_s=3.0, sweep_s=1.0)) as stack:
        yield stack


@pytest.fixture
def api(stack: Stack) -> Iterator[Api]:
    with Api(stack.api_url, stack.keys["owner"]) as api:
        yield api


def rows(count: int, pause_s: float) -> bytes:
    """Sound tasks whose verifier takes its time; the last one's reference is wrong."""
    made = [
        {
            "task_id": f"add-{at}",
            "prompt": f"Write add(n), which adds {at} to a whole number.",
            "reference": f"def add(n):\n    return n + {at}",
            "tests": [f"import time; time.sleep({pause_s})", f"assert add(2) == {2 + at}", f"assert add(-7) == {at - 7}", f"assert add(100) == {100 + at}"],
            "entry_point": "add",
        }
        for at in range(1, count + 1)
    ]
    made[-1]["reference"] = "def add(n):\n    return n"
    return b"".join(msgspec.json.encode(one) + b"\n" for one in made)


def register(api: Api, folder: Path, version: str, text: bytes) -> str:
    """The address of a new version of these rows."""
    (folder / "rows.jsonl").write_bytes(text)
    out = io.BytesIO()
    packed = pack([folder / "rows.jsonl"], out)
    assert packed.sha256 == hashlib.sha256(out.getvalue()).hexdigest()
    api.upload(f"/v1/artifacts/{packed.sha256}", [out.getvalue()])
    address = f"/v1/environments/acme/rows/versions/{version}"
    api.put(f"{address}/package", {"artifact": packed.sha256, "face": "rows"})
    return address


def until(api: Api, probe: str, fulfilled: Callable[[dict[str, Any]], bool], patience_s: float = 120.0) -> dict[str, Any]:
    ends = time.monotonic() + patience_s
    while not fulfilled(now := api.get(f"/v1/probes/{probe}")):
        assert time.monotonic() < ends, now
        time.sleep(0.05)
    return now


def over(probe: dict[str, Any]) -> bool:
    return probe["state"] in ("done", "failed", "cancelled")


def test_a_probe_that_is_asked_for_is_worked_off_and_obeyed(api: Api, tmp_path: Path) -> None:
    address = register(api, tmp_path, "1", rows(2, 0.0))
    probe = api.post(f"{address}/probes", {"priority": "live"})["id"]
    done = until(api, probe, over)
    assert (done["state"], done["done"], done["note"]) == ("done", 2, "")
    assert done["spent"]["cpu_s"] > 0
    tasks = api.get(f"/v1/probes/{probe}/tasks")["tasks"]
    assert [one["task"] for one in tasks] == ["add-1", "add-2"]
    assert ["unsolvable" in one["outcomes"] for one in tasks] == [False, True]
    assert tasks[1]["report"]["reproduce"].startswith("inspector probe ")
    states = {one["task"]: one["state"] for one in api.get("/v1/decisions/snapshot")["states"]}
    assert states["add-2"] == "quarantined"
    card = api.get(f"{address}/scorecard")
    assert (card["probed"], len(card["content_version"]), len(card["verifier_digest"])) == (2, 64, 64)


def test_a_package_that_is_none_fails_with_the_reason(api: Api, tmp_path: Path) -> None:
    address = register(api, tmp_path, "none", b'{"no": "tests"}\n')
    done = until(api, api.post(f"{address}/probes", {"priority": "live"})["id"], over)
    assert done["state"] == "failed"
    assert "rows.jsonl:1" in done["note"]


@pytest.mark.slow
def test_a_probe_goes_on_where_its_worker_was_killed(stack: Stack, api: Api, tmp_path: Path) -> None:
    address = register(api, tmp_path, "sleeping", rows(6, 0.1))
    probe = api.post(f"{address}/probes", {"priority": "live"})["id"]
    before = until(api, probe, lambda now: now["done"] >= 2)
    reported = {one["task"]: one["report"] for one in api.get(f"/v1/probes/{probe}/tasks")["tasks"] if one["report"]}
    killed = stack.children["sandbox"].process
    assert killed is not None
    owners = wait_for_a_box(killed.pid)
    for pid in session_of(killed.pid):
        os.kill(pid, signal.SIGKILL)
    done = until(api, probe, over)
    assert (done["state"], done["done"], done["outcomes"]["unsolvable"]) == ("done", 6, 1)
    assert before["done"] < 6
    after = {one["task"]: one["report"] for one in api.get(f"/v1/probes/{probe}/tasks")["tasks"]}
    assert {task: after[task] for task in reported} == reported, "what was done stays done"
    for task, report in after.items():
        paid = [run["reward"] for run in report["runs"] if run["family"] == "reference"]
        assert set(paid) == ({0.0} if task == "add-6" else {1.0}), (task, paid)
        assert not [run for run in report["runs"] if run["trouble"]]
    assert left_of(owners) == []


def wait_for_a_box(worker: int, patience_s: float = 30.0) -> set[str]:
    """The owners among the processes of this worker, once a box of theirs runs."""
    ours = [stage.owner_name(pid) for pid in session_of(worker)]
    ends = time.monotonic() + patience_s
    while not (found := {owner for owner in ours if any(mark.startswith(owner) for mark in marks())}):
        assert time.monotonic() < ends
    return found


def marks() -> list[str]:
    """The names of boxes, by the processes in them."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        found += [word.decode().partition("=")[2] for word in words if word.startswith(f"{MARK}=".encode())]
    return found


def left_of(owners: set[str]) -> list[str]:
    """Processes, folders, mounts and control groups of owners that are no more."""
    mounts = Path("/proc/self/mountinfo").read_text()
    groups = [name for top in cgroups.tops() for _, folders, _ in os.walk(top) for name in folders]
    return [
        f"{owner}: {what}"
        for owner in owners
        for what, there in (
            ("processes", any(mark.startswith(owner) for mark in marks())),
            ("folder", (stage.PLACE / owner).exists()),
            ("mounts", f"/{owner}/" in mounts),
            ("control groups", any(group.startswith(owner) for group in groups)),
        )
        if there
    ]


def test_a_worker_that_may_make_no_boxes_ends_and_says_why() -> None:
    powerless = "import os; from inspector.worker import sandboxed; os.setegid(65534); os.seteuid(65534); sandboxed._ready()"
    ran = subprocess.run([sys.executable, "-P", "-c", powerless], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 1
    assert ran.stderr.startswith("no probes here: this machine gives no box: root: ")
