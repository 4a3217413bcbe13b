"""A box made ahead is as any other box, is used once, and is gone where nobody uses it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from inspector.sandbox import spares
from inspector.sandbox.bubblewrap import Bubblewrap
from inspector.sandbox.cgroups import members
from inspector.sandbox.protocol import Ended, Limits, Network, Refused
from inspector.sandbox.spare import order_of

LIMITS = Limits(wall_s=20, memory_bytes=128 << 20, pids=32, disk_bytes=32 << 20, inodes=2000, output_bytes=1 << 16, flood_bytes=4 << 20)
SHOW = """
env; pwd; readlink /proc/self/cwd; ls /proc/self/fd; cut -d' ' -f3,5- /proc/self/mountinfo; cat /proc/self/limits /proc/self/cgroup /proc/self/uid_map
grep -E 'Cap|NoNew|Secc|Sig|Uid|Gid|Groups|NSpid|Umask|Trac' /proc/self/status; ls -l /proc/self/ns | wc -l; cut -d' ' -f4-8 /proc/self/stat
cat /proc/sys/user/max_user_namespaces /proc/self/oom_score_adj; ls -la / /dev | grep -v ' proc$'; ls /proc/1/fd | wc -l; stat -L -c %F /proc/self/fd/[012]
"""


@pytest.fixture(scope="module")
def backend(boxes, tmp_path_factory):
    return Bubblewrap(tmp_path_factory.mktemp("ahead"))


def until(true):
    deadline = time.monotonic() + 20
    while not true() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert true()


def ahead(backend, layers=(), limits=LIMITS):
    """Have a box of this kind made ahead."""
    kind = backend._kind([layer.path for layer in layers], limits, Network.OFF, backend._standing()[0])
    for _ in range(2):
        with backend.create(layers, limits=limits) as box:
            assert box.run(["true"]).ok
    until(lambda: kind in backend._spares.waiting)


def plain(result):
    """Apart from what names one box."""
    text = re.sub(r"/\d+/(r|e|p\d|\d+/[uw])|pipe:\[\d+\]|\b0:\d+\b|\d\d:\d\d", "", result.stdout.decode())
    return (result.ended, result.exit_code, text)


@pytest.mark.parametrize("stdin", [b"", b"in"])
def test_it_is_confined_and_surrounded_as_any_other(boxes, backend, stdin):
    ahead(backend)
    given = {"limits": LIMITS, "environment": {"A": "1 '$x'\n"}, "cwd": "/tmp"}
    with backend.create(**given) as box, Bubblewrap(backend._folder, ahead=False).create(**given) as other:
        assert box.spare is not None
        assert plain(box.run(["/bin/sh", "-c", SHOW], stdin=stdin)) == plain(other.run(["/bin/sh", "-c", SHOW], stdin=stdin))
        assert plain(box.run(["/bin/sh", "-c", SHOW], stdin=stdin)) == plain(other.run(["/bin/sh", "-c", SHOW], stdin=stdin))


def test_its_command_ends_as_any_other(backend):
    ends = []
    for command, stdin in [
        (["no-such"], b""),
        (["/etc/hosts"], b""),
        (["wc", "-c"], b"x" * 300_000),
        (["/bin/sh", "-c", "echo out; echo err >&2; exit 3"], b""),
        (["yes"], b""),
    ]:
        ahead(backend)
        with backend.create(limits=LIMITS) as box:
            assert box.spare is not None
            result = box.run(command, stdin=stdin, timeout_s=10)
        ends.append((result.ended, result.exit_code, result.stdout[:9]))
    assert ends == [
        (Ended.EXITED, 127, b""),
        (Ended.EXITED, 126, b""),
        (Ended.EXITED, 0, b"300000\n"),
        (Ended.EXITED, 3, b"out\n"),
        (Ended.FLOODED, None, b"y\ny\ny\ny\ny"),
    ]


def test_it_is_used_once_and_sees_nothing_of_the_last(backend):
    names = set()
    for _ in range(3):
        ahead(backend)
        with backend.create(limits=LIMITS) as box:
            assert box.spare is not None
            names.add(box.name)
            assert box.run(["/bin/sh", "-c", "setsid sleep 300 & ls /tmp; echo x >/tmp/left"]).stdout == b""
            assert box.group.pids() == []
            assert set(box.diff().changes) == {"/tmp/left"}
    assert len(names) == 3


def test_a_fork_of_ours_does_not_hold_its_input_open(backend):
    ahead(backend)
    if (pid := os.fork()) == 0:
        time.sleep(30)
        os._exit(0)
    try:
        with backend.create(limits=LIMITS) as box:
            assert box.spare is not None
            assert box.run(["wc", "-c"], stdin=b"four", timeout_s=10).stdout == b"4\n"
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_files_put_into_it_first_are_seen_by_its_command(backend):
    ahead(backend)
    with backend.create(limits=LIMITS) as box:
        waiter = box.group.pids()
        box.write("/work/a", b"one")
        assert waiter
        assert box.group.pids() == []
        assert box.run(["cat", "/work/a"]).stdout == b"one"


def test_what_it_cannot_be_told_is_done_without_it(backend):
    for argv, cwd in ((["echo", "\u00e9"], "/"), (["echo", "x" * 110_000], "/"), (["/tmp/A=B"], "/"), (["echo"], "tmp")):
        assert order_of(argv, {}, cwd, silent=True) is None
    ahead(backend)
    with backend.create(limits=LIMITS) as box:
        assert box.spare is not None
        assert box.run(["echo", "\u00e9"]).stdout == "\u00e9\n".encode()


def test_layers_do_not_put_their_own_shell_before_the_command(backend):
    with backend.create(limits=LIMITS) as box:
        text = "rm /bin; mkdir /bin; printf '#!/usr/bin/env\\necho forged\\n' >/bin/sh; cp /bin/sh /bin/env; /usr/bin/chmod 755 /bin/*; ln -s sh /bin/echo"
        assert box.run(["/usr/bin/sh", "-c", text]).exit_code is not None
        layer = box.snapshot()
    ahead(backend, [layer])
    with backend.create([layer], limits=LIMITS) as box:
        assert box.spare is not None
        assert box.run(["/usr/bin/printf", "mine"]).stdout == b"mine"


def test_a_layer_that_took_the_name_of_another_is_another(backend):
    with backend.create(limits=LIMITS) as box:
        box.write("/work/a", b"one")
        layer = box.snapshot()
    ahead(backend, [layer])
    shutil.rmtree(layer.path)
    with pytest.raises(Refused):
        backend.create([layer], limits=LIMITS)
    with backend.create(limits=LIMITS) as box:
        box.write("/work/a", b"one")
        assert box.snapshot() == layer
    with backend.create([layer], limits=LIMITS) as box:
        assert box.spare is None
        assert box.run(["cat", "/work/a"]).stdout == b"one"


def test_one_that_died_waiting_is_not_used(backend):
    ahead(backend)
    for spare, _ in backend._spares.waiting.values():
        signal.pidfd_send_signal(spare.running.init, signal.SIGKILL)
        until(lambda: not spare.alive)  # noqa: B023
    with backend.create(limits=LIMITS) as box:
        assert box.spare is None
        assert box.run(["true"]).ok


def test_one_that_nobody_asks_for_is_ended(tmp_path, boxes, monkeypatch):
    monkeypatch.setattr(spares, "IDLE_S", 0.1)
    own = Bubblewrap(tmp_path)
    for _ in range(2):
        with own.create(limits=LIMITS) as box:
            box.run(["true"])
    own._spares.could_be(box.plan.kind)
    until(lambda: not own._spares.wanted and not list(own._stage.folder.glob("[0-9]*")))
    assert not any(group.pids() for group in tuple(own._stage.groups.free))
    own._spares.close()
    assert not own._spares.thread.is_alive()


OWNER = """
import sys, time
from pathlib import Path
from inspector.sandbox.bubblewrap import Bubblewrap
backend = Bubblewrap(Path(sys.argv[1]))
for _ in range(2):
    with backend.create() as box:
        box.run(["true"])
while not backend.waiting():
    time.sleep(0.01)
print(*next(iter(backend._spares.waiting.values()))[0].ground.group.folders.values(), flush=True)
if sys.argv[2] == "killed":
    time.sleep(60)
"""


@pytest.mark.parametrize("end", ["killed", "over"])
def test_it_does_not_outlive_its_owner(boxes, tmp_path, end):
    with subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path), end], stdout=subprocess.PIPE, text=True) as process:
        folders = [Path(word) for word in process.stdout.readline().split()]
        assert folders
        if end == "killed":
            assert any(members(folder) for folder in folders)
            os.kill(process.pid, signal.SIGKILL)
    until(lambda: not any(members(folder) for folder in folders))
    assert end == "killed" or not any(folder.exists() for folder in folders)
