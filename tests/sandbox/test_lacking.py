"""A machine that cannot give a box says what it lacks, and gives nothing weaker."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from inspector.sandbox import launch, probing
from inspector.sandbox.cgroups import Cgroups
from inspector.sandbox.opening import open_backend
from inspector.sandbox.protocol import Limits, Refused


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (("here", lambda: Cgroups({})), "cgroup memory"),
        (("_bwrap", lambda: None), "bwrap"),
        (("os.geteuid", lambda: 1000), "root"),
        (("shutil.which", lambda name: None), "chroot"),
    ],
)
def test_what_is_missing_is_said_and_nothing_is_made(tmp_path, monkeypatch, change, word):
    monkeypatch.setattr(f"inspector.sandbox.probing.{change[0]}", change[1])
    backend = open_backend(tmp_path)
    assert word in backend.capabilities.missing
    assert not backend.capabilities.snapshot
    with pytest.raises(Refused, match=word):
        backend.create()
    assert not (tmp_path / "layers").exists()


def test_a_bwrap_that_cannot_make_namespaces_is_found_out_by_trying(boxes, tmp_path, monkeypatch):
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and len(folder.parts) > 2:
            folder.chmod(0o755)
    monkeypatch.setattr(probing, "_bwrap", lambda: str(broken))
    backend = open_backend(tmp_path / "own")
    assert "No permissions to create new namespace" in backend.capabilities.missing["box"]
    with pytest.raises(Refused, match="No permissions"):
        backend.create()


def test_an_unprivileged_service_is_told_what_it_would_take(tmp_path):
    script = "from inspector.sandbox.opening import open_backend; print(sorted(open_backend().capabilities.missing))"
    if subprocess.run(["test", "-x", sys.executable], user=65534, group=65534, extra_groups=[]).returncode:
        pytest.skip("nobody may not run the Python that runs us")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, user=65534, group=65534, extra_groups=[], cwd="/")
    assert "root" in done.stdout


def test_a_program_for_crashes_is_kept_from_being_called(boxes, monkeypatch):
    monkeypatch.setattr(launch, "_piped", lambda: True)
    with boxes.create(limits=Limits(memory_bytes=64 << 20)) as box:
        assert box.run(["grep", "core", "/proc/self/limits"]).stdout.split()[4:6] == [b"1", b"1"]
