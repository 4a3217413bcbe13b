"""What a box does for those who use it well."""

from __future__ import annotations

import os
import socket
import sys

import pytest

from inspector.sandbox.opening import open_backend
from inspector.sandbox.protocol import Changed, Ended, Layer, Limits, Network, Refused


def sh(box, text, **more):
    return box.run(["/bin/sh", "-c", text], **more)


def test_a_command_tells_its_exit_and_both_outputs(box):
    result = sh(box, "echo out; echo err >&2; exit 3")
    assert (result.ended, result.exit_code, result.stdout, result.stderr) == (Ended.EXITED, 3, b"out\n", b"err\n")
    assert not result.ok
    assert result.wall_s > 0
    assert result.peak_bytes


def test_a_command_that_is_not_there_is_no_broken_box(box):
    assert box.run(["no-such-command"]).exit_code == 127
    assert box.run(["/etc/hosts"]).exit_code == 126
    assert box.run(["true"], cwd="/no/such/folder").exit_code == 126


def test_input_of_any_size_is_passed_or_left(box):
    assert box.run(["wc", "-c"], stdin=b"x" * 300_000).stdout.strip() == b"300000"
    assert box.run(["true"], stdin=b"x" * 300_000).ok


def test_environment_and_folder_of_a_command_go_before_those_of_the_box(boxes):
    with boxes.create(environment={"A": "1", "B": "1"}, cwd="/tmp") as box:
        assert sh(box, "echo $A $B $HOME $PWD", environment={"B": "2"}).stdout == b"1 2 /root /tmp\n"
        assert sh(box, "pwd", cwd="/root").stdout == b"/root\n"


def test_the_python_that_runs_us_runs_in_a_box_with_its_packages(box):
    for command in (sys.executable, "python3", "python"):
        assert box.run([command, "-c", "import msgspec, sys; print(sys.version_info[:3])"]).stdout.decode().strip() == str(sys.version_info[:3])


def test_what_is_written_is_there_and_what_was_changed_is_told(box):
    box.write("/work/a/task.txt", b"one", mode=0o755)
    assert sh(box, "cat /work/a/task.txt && test -x /work/a/task.txt && echo two > /work/b && rm /etc/hosts && mkdir /work/c").stdout == b"one"
    assert box.read("/work/b", 10) == b"two\n"
    assert box.read("/etc/hosts", 100) is None
    changes = box.diff().changes
    assert changes["/etc/hosts"] is Changed.DELETED
    assert {path for path, change in changes.items() if change is Changed.WRITTEN} == {"/work", "/work/a", "/work/a/task.txt", "/work/b", "/work/c"}


def test_a_folder_made_anew_hides_what_was_in_it(boxes):
    with boxes.create() as box:
        sh(box, "mkdir /work; echo 1 > /work/old")
        first = box.snapshot()
    with boxes.create([first]) as box:
        sh(box, "rm -r /work; mkdir /work; echo 2 > /work/new")
        assert box.diff().changes == {"/work/new": Changed.WRITTEN, "/work/old": Changed.DELETED}
        assert box.read("/work/old", 10) is None
        second = box.snapshot()
    with boxes.create([first, second]) as box:
        assert sh(box, "ls /work").stdout == b"new\n"
        assert box.diff().changes == {}
        box.write("/work/old", b"3")
        assert sh(box, "cat /work/old").stdout == b"3"


def test_a_file_put_where_a_folder_was_deleted_brings_nothing_back(boxes):
    with boxes.create() as box:
        sh(box, "mkdir /work; echo 1 > /work/old")
        layer = box.snapshot()
    with boxes.create([layer]) as box:
        sh(box, "rm -r /work")
        box.write("/work/new", b"2")
        assert sh(box, "ls /work").stdout == b"new\n"


def test_the_same_changes_are_the_same_layer(boxes):
    def made():
        with boxes.create() as box:
            sh(box, "mkdir -p /work; echo 1 > /work/a; ln /work/a /work/b; ln -s a /work/c; mkfifo /work/d")
            return box.snapshot()

    first, second = made(), made()
    assert first == second
    with boxes.create([first]) as box:
        assert sh(box, "cd /work; test a -ef b && readlink c && test -p d").stdout == b"a\n"
        sh(box, "echo 2 > /work/a")
    with boxes.create([first]) as box:
        assert sh(box, "cat /work/a /work/b").stdout == b"1\n1\n"


def test_a_layer_that_is_not_there_is_refused(boxes, tmp_path):
    with pytest.raises(Refused, match="no layer"):
        boxes.create([Layer("sha256:0", tmp_path / "gone")])


def test_a_network_that_the_operator_does_not_give_is_refused(boxes):
    with pytest.raises(Refused, match="network"):
        boxes.create(network=Network.ON)


def test_a_network_that_the_operator_gives_is_the_machine_s(tmp_path, boxes):
    backend = open_backend(tmp_path, network=True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        ask = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 5)"
        with backend.create(network=Network.ON) as box:
            assert box.run(["python3", "-c", ask]).ok
        with backend.create() as box:
            assert not box.run(["python3", "-c", ask]).ok


@pytest.mark.parametrize("path", ["relative", "/a/../../b", "/", "/nul\0", "/usr/bin/env", "/proc/1/x", "/dev/x"])
def test_a_path_that_is_not_the_box_s_own_is_refused(box, path):
    with pytest.raises(Refused):
        box.write(path, b"")
    with pytest.raises(Refused):
        box.read(path, 10)


def test_a_file_longer_than_asked_for_is_refused(box):
    box.write("/a", b"12345")
    assert box.read("/a", 5) == b"12345"
    with pytest.raises(Refused, match="5 bytes"):
        box.read("/a", 4)


def test_processes_memory_and_time_are_limited(boxes):
    with boxes.create(limits=Limits(memory_bytes=64 << 20, wall_s=5, pids=16)) as box:
        assert box.run(["python3", "-c", "x = bytearray(200 << 20)"]).ended is Ended.OUT_OF_MEMORY
        assert box.run(["sleep", "100"], timeout_s=0.2).ended is Ended.TIMED_OUT
        assert b"fork" in sh(box, "for i in $(seq 40); do sleep 3 & done").stderr
        assert sh(box, "kill -9 $$").ended is Ended.SIGNALLED


def test_two_backends_of_one_process_keep_apart(boxes, tmp_path):
    with boxes.create() as box:
        sh(box, "echo 1 > /a")
        other = open_backend(tmp_path)
        with other.create() as second:
            assert not sh(second, "cat /a").ok
            layer = second.snapshot()
        assert sh(box, "cat /a").stdout == b"1\n"
        with boxes.create([layer]) as third:
            assert third.run(["true"]).ok


def test_a_fork_makes_boxes_of_its_own(boxes):
    reading, writing = os.pipe()
    with boxes.create() as box:
        if not (pid := os.fork()):
            with boxes.create() as own:
                os.write(writing, own.run(["echo", own.name]).stdout)
            boxes._stage.close()
            os._exit(0)
        os.waitpid(pid, 0)
        os.close(writing)
        with open(reading, "rb") as answer:
            name = answer.read().decode().strip()
        assert name.split("-")[1] == str(pid)
        assert box.run(["true"]).ok
