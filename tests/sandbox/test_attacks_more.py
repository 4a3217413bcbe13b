"""More attacks on boxes: on what a layer is called, on the reaper, on what is told, and on the supervisor itself."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import time

import pytest

from inspector.sandbox import layers, reaper, stage
from inspector.sandbox.opening import open_backend
from inspector.sandbox.protocol import Changed, Limits, Refused


def ran(box, *words, **given):
    result = box.run(list(words), **given)
    assert result.ok, result
    return result


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


# What goes in and comes out


@pytest.mark.parametrize("session", [False, True])
def test_what_is_no_text_is_refused_and_the_box_goes_on(boxes, session):
    with boxes.create(session=session) as box:
        for attempt in (
            lambda: box.run(["/bin/echo", "\ud800"]),
            lambda: box.run(["/bin/echo"], environment={"A": "\ud800"}),
            lambda: box.run(["/bin/echo"], cwd="/\ud800"),
            lambda: box.write("/root/\ud800", b""),
            lambda: box.read("/root/\ud800", 1),
        ):
            with pytest.raises(Refused):
                attempt()
        assert ran(box, "/bin/echo", "a").stdout == b"a\n"


@pytest.mark.parametrize("seconds", [1e7, 1e300, float("inf")])
@pytest.mark.parametrize("session", [False, True])
def test_a_time_limit_may_be_longer_than_the_kernel_can_wait(boxes, seconds, session):
    with boxes.create(limits=Limits(wall_s=seconds), session=session) as box:
        ran(box, "/bin/true")


def test_limits_that_no_number_of_the_kernel_holds_are_refused(boxes):
    for limits in (Limits(cpus=1e306), Limits(cpus=float("nan")), Limits(wall_s=float("nan"))):
        with pytest.raises(Refused), boxes.create(limits=limits):
            pass


def test_outputs_can_be_opened_by_their_names(box):
    result = ran(box, "/bin/sh", "-c", "echo out >/dev/stdout; echo err >/dev/stderr; cat </dev/stdin", stdin=b"in")
    assert (result.stdout, result.stderr) == (b"out\nin", b"err\n")


# Layers and diffs


def test_the_root_of_a_box_may_be_shut_and_the_layer_is_as_any_other(boxes):
    with boxes.create() as box:
        plain = box.snapshot()
    before = plain.path.stat()
    with boxes.create() as box:
        ran(box, "/bin/chmod", "000", "/")
        shut = box.snapshot()
    assert shut == plain
    assert (plain.path.stat().st_ino, mode(plain.path)) == (before.st_ino, 0o755)


def test_a_folder_whose_mode_was_changed_is_told(box):
    ran(box, "/bin/chmod", "777", "/etc", "/root")
    assert box.diff().changes == {"/etc": Changed.WRITTEN, "/root": Changed.WRITTEN}


def test_a_file_with_more_names_than_the_store_takes_is_refused_and_breaks_nothing(box, monkeypatch):
    def full(*_, **__):
        raise OSError(31, "Too many links")

    ran(box, "/bin/sh", "-c", "echo a >/root/a; ln /root/a /root/b")
    monkeypatch.setattr(layers.os, "link", full)
    with pytest.raises(Refused):
        box.snapshot()


def test_a_mode_that_changes_while_it_is_copied_is_in_the_name_of_the_layer(boxes, monkeypatch):
    """Told by the entry of a folder, copied by the descriptor."""
    ids = {}
    for changed in (False, True):
        with boxes.create() as box:
            box.write("/root/a", b"x", mode=0o644)
            if changed:
                real = layers.Copy._file
                monkeypatch.setattr(
                    layers.Copy, "_file", lambda self, source, to, name, real=real: (os.chmod(name, 0o755, dir_fd=source), real(self, source, to, name))
                )
            layer = box.snapshot()
            ids[mode(layer.path / "root" / "a")] = layer.id
    assert set(ids) == {0o644, 0o755}
    assert ids[0o644] != ids[0o755]


WAKERS = """
import os, signal, time
os.setsid()
for _ in range(6):
    if os.fork() == 0:
        break
signal.signal(signal.SIGCONT, lambda *_: None)
number = 0
while True:
    os.kill(-1, signal.SIGCONT)
    number += 1
    open(f"/root/{os.getpid()}", "w").write(str(number))
"""


def test_processes_that_wake_each_other_stand_still_for_a_snapshot(boxes):
    with boxes.create(session=True, limits=Limits(cpus=2.0)) as session:
        ran(session, "/bin/sh", "-c", f"python3 -c '{WAKERS}' >/dev/null 2>&1 & sleep 1")
        moving = []
        for _ in range(5):
            with session._still():
                first = {path: path.read_bytes() for path in (session.disk / "u" / "root").iterdir()}
                time.sleep(0.05)
                moving.append(any(path.read_bytes() != text for path, text in first.items()))
        assert moving == [False] * 5
        assert ran(session, "/bin/echo", "alive").stdout == b"alive\n"


# The reaper


def test_marks_that_are_no_numbers_do_not_stop_the_reaper(boxes):
    here = stage.owner_name().split("-")[0]
    marks = [f"{here}-\u00b2-1", f"{here}-{'9' * 5000}-1", f"{here}-1-{'9' * 5000}", f"{here}-\u0662-1", f"{here}--"]
    children = [subprocess.Popen(["/bin/sleep", "60"], env={"BOX": mark}) for mark in marks]
    try:
        reaper.reap()
    finally:
        for child in children:
            child.kill()
            child.wait()


def test_a_process_whose_name_is_no_text_does_not_stop_the_reaper():
    code = "import ctypes,sys,time; ctypes.CDLL(None).prctl(15, b'\\xff) S 1', 0, 0, 0); print('ready', flush=True); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        child.stdout.readline()
        assert stage.started(child.pid).isdigit()
    finally:
        child.kill()
        child.communicate()


def test_a_place_that_is_reached_through_a_link_is_cleared_without_what_is_shown_there(boxes, tmp_path, monkeypatch):
    """The kernel names mounts by their real places: what it names otherwise must not look like a folder to delete."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "precious").write_text("kept")
    place = tmp_path / "link" / "stage"
    place.mkdir()
    stage._show(tmp_path / "host", place / "p0")
    stage.clear(place)
    assert (tmp_path / "host" / "precious").read_text() == "kept"
    assert not place.exists()


def test_a_fork_does_not_wait_for_what_another_thread_held(tmp_path):
    """A child has none of the threads, but their locks."""
    backend = open_backend(tmp_path)
    held, free = threading.Event(), threading.Event()

    def hold():
        with backend._lock:
            held.set()
            free.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    if (pid := os.fork()) == 0:
        import signal

        signal.alarm(10)
        os._exit(0 if backend.capabilities is not None else 1)
    status = os.waitpid(pid, 0)[1]
    free.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 0
