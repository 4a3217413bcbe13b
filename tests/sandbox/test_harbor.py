"""Boxes by Harbor, on an environment that is nothing but a folder of this machine: the calls are what is looked at."""

from __future__ import annotations

import asyncio
import shutil
import sys
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from inspector.errors import MissingExtra
from inspector.sandbox.harbor import LIMITS, Harbor, HarborBox
from inspector.sandbox.protocol import Ended, Layer, Limits, Network, Refused


class Folder:
    """With the signatures of harbor.environments.base.BaseEnvironment."""

    stopped = False

    def type(self):
        return "folder"

    async def stop(self, delete):
        self.stopped = delete

    async def upload_file(self, source_path, target_path):
        shutil.copy(source_path, target_path)

    async def download_file(self, source_path, target_path):
        shutil.copy(source_path, target_path)

    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None):
        process = await asyncio.create_subprocess_shell(command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=env)
        out, err = await process.communicate()
        return SimpleNamespace(stdout=out.decode(errors="surrogateescape"), stderr=err.decode(errors="surrogateescape"), return_code=process.returncode)


@pytest.fixture
def box(tmp_path):
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())
        with HarborBox(Folder(), runner, stack.pop_all(), tmp_path, Limits(output_bytes=100), {"A": "1", "PATH": "/usr/bin:/bin"}, "/") as box:
            yield box
    assert box.inner.stopped


def test_a_command_gets_its_surroundings_and_tells_its_end(box):
    result = box.run(["sh", "-c", "echo $A $B; pwd; cat; exit 3"], environment={"B": "2"}, stdin=b"in", cwd="/tmp")
    assert (result.ended, result.exit_code, result.stdout) == (Ended.EXITED, 3, b"1 2\n/tmp\nin")
    assert box.run(["sleep", "9"], timeout_s=0.2).ended is Ended.TIMED_OUT
    assert box.run(["printf", "\\377\\376"]).stdout == b"\xff\xfe"
    loud = box.run(["head", "-c", "1000", "/dev/zero"])
    assert (len(loud.stdout), loud.dropped_bytes) == (100, 900)


def test_files_go_in_and_come_out(box, tmp_path):
    path = str(tmp_path / "a b" / "c")
    box.write(path, b"data", mode=0o750)
    assert (tmp_path / "a b" / "c").stat().st_mode & 0o777 == 0o750
    assert box.read(path, 4) == b"data"
    (tmp_path / "link").symlink_to(path)
    assert box.read(str(tmp_path / "link"), 10) is None
    assert box.read(str(tmp_path / "nothing"), 10) is None
    with pytest.raises(Refused, match="4 bytes"):
        box.read(path, 3)
    with pytest.raises(Refused):
        box.write("../x", b"")


def test_what_harbor_cannot_give_is_refused(box):
    with pytest.raises(Refused, match="processes"):
        Harbor("docker", "debian").create()
    with pytest.raises(Refused, match="pids"):
        Harbor("docker", "debian", without=frozenset({"processes"})).create()
    with pytest.raises(Refused, match="layers"):
        Harbor("docker", "debian", without=frozenset(LIMITS)).create([Layer("sha256:0", box.folder)])
    with pytest.raises(Refused, match="network"):
        Harbor("docker", "debian", without=frozenset(LIMITS)).create(network=Network.ON)
    for ask in (box.diff, box.snapshot):
        with pytest.raises(Refused):
            ask()


def test_without_harbor_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "harbor", None)
    with pytest.raises(MissingExtra, match=r"inspector\[harbor\]"):
        Harbor("docker", "debian", without=frozenset(LIMITS)).create()
