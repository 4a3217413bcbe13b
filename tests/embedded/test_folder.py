"""The data folder: private, one stack at a time, never somebody else's."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from embedded.waiting import until
from inspector.embedded import CannotStart, keeper
from inspector.embedded.folder import Folder, Note, Noted, boot, write_secret
from inspector.embedded.processes import Process, Rung, identify

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def note(*children: Noted, machine_start: str | None = None) -> Note:
    ours = identify(os.getpid())
    assert ours
    return Note(boot=machine_start or boot(), stack=ours, sockets="", api_url="", dashboard_url="", database_url="", redis_url="", children=children)


def noted(process: Process) -> Noted:
    return Noted("thing", process, (Rung(signal.SIGTERM, 5), Rung(signal.SIGKILL, 5)))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path / "data")
    made.prepare()
    return made


@pytest.fixture
def sleeper():
    popen = subprocess.Popen(SLEEP, start_new_session=True)
    process = identify(popen.pid)
    assert process
    yield process
    popen.kill()
    popen.wait()


def test_only_its_owner_can_read_it(folder):
    write_secret(folder.path / "keys.json", b"{}")
    assert (mode(folder.path), mode(folder.path / "keys.json")) == (0o700, 0o600)


def test_a_secret_is_replaced_whole(folder):
    for content in (b"first", b"second"):
        write_secret(folder.path / "keys.json", content)
    assert (folder.path / "keys.json").read_bytes() == b"second"
    assert list(folder.path.glob("*.new")) == []


def test_a_folder_of_other_things_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    before = mode(tmp_path)
    with pytest.raises(CannotStart, match="holds something else"):
        Folder(tmp_path).prepare()
    assert mode(tmp_path) == before


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "data").write_text("")
    with pytest.raises(CannotStart, match="cannot be used as the data folder"):
        Folder(tmp_path / "data").prepare()


def test_a_second_start_is_told_who_has_it(folder):
    folder.lock()
    with pytest.raises(CannotStart, match=f"already served by process {os.getpid()}"):
        Folder(folder.path).lock()
    folder.unlock()
    Folder(folder.path).lock()


def test_a_lock_that_a_dead_stack_s_keeper_still_holds_is_waited_for(folder):
    code = "import os, sys; from pathlib import Path; from inspector.embedded.folder import Folder; from inspector.embedded import keeper"
    code += "; f = Folder(Path(sys.argv[1])); keeper.start(f, f.lock()); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code, str(folder.path)], check=False)
    folder.lock()


def test_what_a_dead_start_left_is_ended(folder, sleeper):
    folder.write(note(noted(sleeper)))
    assert keeper.end_leftovers(folder) == ["thing"]
    assert not sleeper.alive
    assert folder.read() is None


@pytest.mark.parametrize("change", [{"born": 1}, {"pid": 1}])
def test_a_process_that_only_has_the_pid_of_one_of_ours_is_spared(folder, sleeper, change):
    folder.write(note(noted(msgspec.structs.replace(sleeper, **change))))
    assert keeper.end_leftovers(folder) == []
    assert sleeper.alive


def test_after_a_reboot_the_pids_mean_nothing(folder, sleeper):
    folder.write(note(noted(sleeper), machine_start="another"))
    assert keeper.end_leftovers(folder) == []
    assert sleeper.alive


def test_a_damaged_note_is_nobody_s(folder):
    folder.note_file.write_text('{"boot": ')
    assert keeper.end_leftovers(folder) == []


def test_the_keeper_ends_them_when_its_stack_is_gone(folder, sleeper):
    lock = folder.lock()
    folder.write(note(noted(sleeper)))
    started = keeper.start(folder, lock)
    keeper.dismiss(started)
    until(lambda: not sleeper.alive)
