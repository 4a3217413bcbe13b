"""What is left of a probe that is ended before it is done."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from inspector.sandbox.stage import PLACE, owner_name, started

PROBE = [sys.executable, "-c", "from inspector.cli import main; main()", "probe", "rows.jsonl", "--parallel", "1"]
FORMS = ["--sarif", "a.sarif", "--junit", "a.xml", "--html", "a.html", "--write-baseline", "known.json"]
DOUBLE = {"prompt": "Write double(x).", "reference": "def double(x):\n    return 2 * x\n", "tests": ["assert True"]}
ROWS = {"quick": DOUBLE, "endless": DOUBLE | {"reference": "while True:\n    pass\n"}, "later": DOUBLE}


def below(pid):
    """The processes that a process started, and those that they started."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents.setdefault(int((folder / "stat").read_bytes().rpartition(b")")[2].split()[1]), []).append(int(folder.name))
        except OSError:
            continue
    found = list(parents.get(pid, ()))
    for one in found:
        found += parents.get(one, ())
    return found


def until(there, seconds=120):
    """What `there` says, once it says something."""
    end = time.monotonic() + seconds
    while not (found := there()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


@pytest.fixture
def under_way(tmp_path, boxes):
    """A probe whose first task is done and whose second has a box that would not end by itself for long."""
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"task_id": name, **row}) + "\n" for name, row in ROWS.items()))
    ours, theirs = pty.openpty()

    def start(*options):
        shown = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
        ran = subprocess.Popen([*PROBE, *options], stdout=subprocess.PIPE, stderr=theirs, cwd=tmp_path, env=shown, start_new_session=True, text=True)
        drawn = b""
        while b"1/3" not in drawn:
            drawn += os.read(ours, 1 << 16)
        until(lambda: len(below(ran.pid)) > 1)
        return ran

    yield start
    os.close(theirs)
    os.close(ours)


def test_ctrl_c_tells_what_was_done_and_leaves_nothing_behind(under_way, tmp_path):
    ran = under_way("--json", *FORMS)
    owner, theirs = owner_name(ran.pid), below(ran.pid)
    os.killpg(ran.pid, signal.SIGINT)  # as a terminal does: to all that it started too
    out, _ = ran.communicate(timeout=30)
    task, environment, last = map(json.loads, out.splitlines())
    assert ran.returncode == 130
    assert (task["task"], task["outcomes"]) == ("quick", ["trivially_passable"])
    assert environment["tasks"] == 1
    assert (last["interrupted"], last["probed"], last["under_way"] + last["not_begun"]) == ("SIGINT", 1, 2)
    assert not (PLACE / owner).exists()
    assert not list(filter(started, theirs))
    (run,) = json.loads((tmp_path / "a.sarif").read_text())["runs"]
    assert run["invocations"][0]["executionSuccessful"] is False
    suites = ElementTree.parse(tmp_path / "a.xml").getroot()
    assert [(suite.get("tests"), suite.get("errors")) for suite in suites] == [("1", "0"), ("1", "1")]
    assert "interrupted by SIGINT" in (tmp_path / "a.html").read_text()
    assert not (tmp_path / "known.json").exists()  # it would forgive what was not probed


def test_sigterm_ends_with_a_line_that_says_so_even_when_it_comes_twice(under_way):
    ran = under_way()
    theirs = below(ran.pid)
    ran.terminate()
    ran.terminate()
    out, _ = ran.communicate(timeout=30)
    assert ran.returncode == 143
    assert "quick: trivially_passable" in out
    assert out.splitlines()[-1].startswith("interrupted by SIGTERM; of 3 tasks: 1 probed, ")
    assert not list(filter(started, theirs))


def test_the_next_probe_clears_away_what_a_killed_one_left(under_way, tmp_path):
    ran = under_way("--json")
    owner = PLACE / owner_name(ran.pid)
    ran.kill()
    ran.communicate(timeout=30)
    assert str(owner) in Path("/proc/self/mountinfo").read_text()
    again = subprocess.run([*PROBE, "--task", "quick"], cwd=tmp_path, capture_output=True, timeout=120, check=False)
    assert again.returncode == 0
    assert str(owner) not in Path("/proc/self/mountinfo").read_text()
    assert not owner.exists()
