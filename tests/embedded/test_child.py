"""One child: started, started again, stopped with all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from embedded.waiting import until
from inspector.embedded.child import Child, Program, User, launched
from inspector.embedded.processes import Rung, born, identify, session_of

SLEEP = "import time; time.sleep(600)"
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
WITH_A_DEAF_GRANDCHILD = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {DEAF!r}], process_group=0); time.sleep(600)"


def pid_of(child: Child) -> int:
    assert child.process
    return child.process.pid


def test_a_child_that_dies_is_started_again_and_it_is_said(child, said):
    one = child(SLEEP)
    one.start()
    first = pid_of(one)
    os.kill(first, signal.SIGKILL)
    until(lambda: one.process and one.process.pid != first)
    assert "thing was ended by SIGKILL after" in said[0]
    assert one.starts == 2


def test_pauses_between_starts_grow(child, said):
    one = child("import sys; sys.exit(3)")
    one.start()
    until(lambda: len(said) >= 3)
    assert [line.partition("again in ")[2][:5] for line in said[:3]] == ["0.1 s", "0.2 s", "0.4 s"]
    assert "ended with status 3" in said[0]


def test_a_stopped_child_stays_down(child, said):
    one = child(SLEEP)
    one.start()
    process = one.process
    one.stop()
    assert process
    assert not process.alive
    assert (one.process, one.starts, said) == (None, 1, [])


def test_what_a_child_started_ends_with_it_even_outside_its_group(child):
    one = child(WITH_A_DEAF_GRANDCHILD)
    one.start()
    session = pid_of(one)
    until(lambda: "deaf" in one.log.read_text())
    assert len(session_of(session)) == 2
    one.stop()
    until(lambda: session_of(session) == [])


def test_what_a_killed_child_started_ends_before_the_next_start(child):
    one = child(WITH_A_DEAF_GRANDCHILD)
    one.start()
    first = pid_of(one)
    until(lambda: "deaf" in one.log.read_text())
    os.kill(first, signal.SIGKILL)
    until(lambda: one.starts == 2)
    assert session_of(first) == []


def test_a_deaf_child_is_killed(child):
    one = child(DEAF, ladder=(Rung(signal.SIGTERM, 0.2), Rung(signal.SIGKILL, 5)))
    one.start()
    until(lambda: "deaf" in one.log.read_text())
    one.stop()
    assert one.status == -signal.SIGKILL


def test_a_second_request_hastens(child):
    one = child(DEAF, ladder=(Rung(signal.SIGTERM, 3600), Rung(signal.SIGKILL, 5)))
    one.start()
    until(lambda: "deaf" in one.log.read_text())
    one.stop(hurry=lambda: True)  # hangs for an hour if nobody hurries
    assert one.status == -signal.SIGKILL


def test_a_child_starts_with_a_clean_slate_of_signals(child):
    one = child("print(open('/proc/self/status').read(), flush=True); import time; time.sleep(600)", death_signal=signal.SIGTERM)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        one.start()
        until(lambda: "SigBlk" in one.log.read_text())
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    blocked = next(line for line in one.log.read_text().splitlines() if line.startswith("SigBlk"))
    assert int(blocked.split()[1], 16) == 0


def test_the_log_of_the_last_start_is_kept(tmp_path: Path, said):
    for turn in ("first", "second"):
        one = Child(Program(name="thing", command=["/bin/echo", turn], environment={}), tmp_path / "thing.log", say=said.append)
        one.start()
        until(lambda turn=turn: turn in (tmp_path / "thing.log").read_text())
        one.stop()
    assert "first" in (tmp_path / "thing.log.1").read_text()
    assert "first" not in (tmp_path / "thing.log").read_text()


def test_a_program_that_is_not_there_says_so_in_its_log(tmp_path: Path, said):
    one = Child(Program(name="thing", command=["/no/such/program"], environment={}), tmp_path / "thing.log", say=said.append)
    one.start()
    until(lambda: said)
    one.stop()
    assert "/no/such/program cannot be run: No such file" in (tmp_path / "thing.log").read_text()


def test_a_child_dies_with_its_parent():
    nested = launched([sys.executable, "-c", SLEEP])
    code = f"import os, subprocess; c = {nested!r}; c[4] = str(os.getpid()); print(subprocess.Popen(c).pid, flush=True); import time; time.sleep(600)"
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout
        grandchild = identify(int(parent.stdout.readline()))
        assert grandchild
        until(lambda: b"launch.py" not in Path(f"/proc/{grandchild.pid}/cmdline").read_bytes())
        parent.kill()
    until(lambda: not grandchild.alive)


def test_an_orphan_never_starts():
    done = subprocess.run([*launched(["/bin/echo", "alive"])[:4], "1", "9", "-", "/bin/echo", "alive"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (127, "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_child_of_root_is_whom_it_should_be_and_nothing_more():
    done = subprocess.run(launched(["/bin/cat", "/proc/self/status"], user=User(65534, 65534)), capture_output=True, text=True, check=True)
    fields = dict(line.split(":\t", 1) for line in done.stdout.splitlines() if ":\t" in line)
    assert fields["Uid"].split() == ["65534"] * 4
    assert fields["Gid"].split() == ["65534"] * 4
    assert fields["Groups"].split() == []
    assert int(fields["CapEff"], 16) == 0


def test_a_zombie_counts_as_dead():
    popen = subprocess.Popen(["/bin/true"])
    until(lambda: born(popen.pid) is None)
    popen.wait()
