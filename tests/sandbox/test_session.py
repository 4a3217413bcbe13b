"""A box that stays between commands."""

from __future__ import annotations

import threading
import time

import pytest

from inspector.sandbox.protocol import Changed, Ended, Limits


@pytest.fixture
def session(boxes):
    with boxes.create(session=True, limits=Limits(memory_bytes=256 << 20)) as session:
        yield session


def sh(box, text, **more):
    return box.run(["/bin/sh", "-c", text], **more)


def test_commands_tell_their_exits_signals_and_outputs(session):
    result = sh(session, "echo out; echo err >&2; exit 137")
    assert (result.ended, result.exit_code, result.stdout, result.stderr) == (Ended.EXITED, 137, b"out\n", b"err\n")
    assert sh(session, "kill -9 $$").ended is Ended.SIGNALLED
    assert session.run(["no-such-command"]).exit_code == 127
    assert session.run(["/etc/hosts"]).exit_code == 126
    assert session.run(["true"], cwd="/no/such/folder").exit_code == 126
    assert session.run(["wc", "-c"], stdin=b"x" * 300_000).stdout.strip() == b"300000"
    assert sh(session, "echo $A; pwd", environment={"A": "1"}, cwd="/tmp").stdout == b"1\n/tmp\n"


def test_what_is_left_running_lives_on_and_dies_with_the_box(boxes):
    with boxes.create(session=True) as session:
        assert sh(session, "while :; do echo x >> /tmp/beat; sleep 0.01; done & echo started").stdout == b"started\n"
        first = sh(session, "sleep 0.2; wc -l < /tmp/beat").stdout
        assert int(sh(session, "sleep 0.2; wc -l < /tmp/beat").stdout) > int(first)
        pids = session.group.pids()
        assert len(pids) > 2
    assert session.group.pids() == []


def test_a_server_of_one_command_answers_the_next(session):
    server = "import http.server as h; h.HTTPServer(('127.0.0.1', 8000), h.SimpleHTTPRequestHandler).serve_forever()"
    sh(session, f'echo hello > /srv/file; cd /srv; python3 -c "{server}" >/dev/null 2>&1 &')
    wait = "import socket, time\nwhile socket.socket().connect_ex(('127.0.0.1', 8000)): time.sleep(0.02)"
    assert session.run(["python3", "-c", wait], timeout_s=20).ok
    ask = "import urllib.request as u; print(u.urlopen('http://localhost:8000/file').read())"
    assert session.run(["python3", "-c", ask]).stdout == b"b'hello\\n'\n"


def test_a_command_that_is_too_slow_or_too_loud_ends_and_the_session_goes_on(session):
    assert sh(session, "sleep 100 & sleep 100", timeout_s=0.2).ended is Ended.TIMED_OUT
    assert session.run(["yes"]).ended is Ended.FLOODED
    assert sh(session, "trap '' INT TERM; while :; do :; done", timeout_s=0.2).ended is Ended.TIMED_OUT
    assert sh(session, "echo still here").stdout == b"still here\n"
    assert session.run(["python3", "-c", "x = bytearray(1 << 30)"]).ended is Ended.OUT_OF_MEMORY
    assert sh(session, "echo still here").stdout == b"still here\n"


def test_files_put_into_a_living_box_are_seen_there(session):
    session.write("/work/before", b"1")
    assert sh(session, "cat /work/before; cat /work/after").stdout == b"1"
    session.write("/work/after", b"2", mode=0o600)
    assert sh(session, "cat /work/after").stdout == b"2"
    assert session.read("/work/after", 10) == b"2"
    assert session.diff().changes["/work/after"] is Changed.WRITTEN


def test_a_snapshot_is_taken_while_nothing_runs(boxes, session):
    sh(session, "(while :; do date +%N > /tmp/a; cp /tmp/a /tmp/b; done) >/dev/null 2>&1 &")
    with boxes.create([session.snapshot()]) as box:
        assert box.run(["ls", "/tmp"]).ok
    assert sh(session, "echo goes on").stdout == b"goes on\n"


@pytest.mark.parametrize("deed", ["kill -9 -1", "kill -9 2", "kill -STOP 2; sleep 100"])
def test_what_ends_its_own_session_is_told_so_and_breaks_nothing(session, deed):
    result = sh(session, deed, timeout_s=1)
    assert result.ended in (Ended.SIGNALLED, Ended.TIMED_OUT)
    after = sh(session, "echo again")
    assert after.ended is Ended.SIGNALLED
    assert b"session was ended" in after.stderr


def test_a_session_outlives_the_thread_that_asked_for_it(boxes):
    with boxes.create(session=True) as session:
        thread = threading.Thread(target=sh, args=(session, "true"))
        thread.start()
        thread.join()
        time.sleep(0.05)
        assert sh(session, "echo alive").stdout == b"alive\n"
