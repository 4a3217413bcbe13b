"""Packages: the same tar for the same files, and nothing outside of its folder for a hostile one."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from inspector.environments.protocol import Unreadable
from inspector.environments.trees import read_tree
from inspector.packing import pack, unpack


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "tasks"
    (made / "one" / "tests").mkdir(parents=True)
    (made / "one" / "task.toml").write_text("x = 1")
    script = made / "one" / "tests" / "test.sh"
    script.write_text("true")
    script.chmod(0o755)
    (made / ("ü" * 120)).write_text("a long name")
    return made


def packed(*paths: Path) -> bytes:
    out = io.BytesIO()
    pack(paths, out)
    return out.getvalue()


def test_what_was_packed_comes_back_and_reads_as_the_same_version(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    unpack(io.BytesIO(packed(folder)), tmp_path / "out")
    assert read_tree(tmp_path / "out" / "tasks").digest() == read_tree(folder).digest()


def test_times_owners_and_order_change_nothing(folder: Path) -> None:
    before = packed(folder)
    os.utime(folder / "one" / "task.toml", (1, 1))
    (folder / "one" / "task.toml").chmod(0o600)
    assert packed(folder) == before


def test_links_are_left_out_and_named(folder: Path) -> None:
    before = packed(folder)
    (folder / "away").symlink_to("/etc/passwd")
    out = io.BytesIO()
    assert pack([folder], out).left_out == ["tasks/away is a link"]
    assert out.getvalue() == before


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0) -> tarfile.TarInfo:
    about = tarfile.TarInfo(name)
    about.type, about.linkname, about.size = kind, link, size
    return about


HOSTILE = {
    "climbs": [entry("../x")],
    "link": [entry("a", tarfile.SYMTYPE, "/etc/passwd")],
    "hard link": [entry("a", tarfile.LNKTYPE, "/etc/passwd")],
    "device": [entry("a", tarfile.CHRTYPE)],
    "pipe": [entry("a", tarfile.FIFOTYPE)],
    "file as a folder": [entry("a"), entry("a/b")],
    "too long a name": [entry("a" * 5000)],
}


@pytest.mark.parametrize("entries", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_tar_is_refused(entries: list[tarfile.TarInfo], tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for about in entries:
            tar.addfile(about, io.BytesIO(bytes(about.size)))
    (tmp_path / "in").mkdir()
    with pytest.raises(Unreadable):
        unpack(io.BytesIO(out.getvalue()), tmp_path / "in")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_an_absolute_name_stays_inside(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.addfile(entry("/etc/x"))
    (tmp_path / "in").mkdir()
    unpack(io.BytesIO(out.getvalue()), tmp_path / "in")
    assert (tmp_path / "in" / "etc" / "x").exists()


@pytest.mark.parametrize("body", [b"", b"no tar", b"\x1f\x8b" + bytes(600), bytes(100)])
def test_what_is_no_plain_tar_is_refused(body: bytes, tmp_path: Path) -> None:
    with pytest.raises(Unreadable):
        unpack(io.BytesIO(body), tmp_path)


def test_a_file_that_says_it_is_larger_than_all_is_refused(tmp_path: Path) -> None:
    about = entry("big", size=1 << 40)
    with pytest.raises(Unreadable, match="more than"):
        unpack(io.BytesIO(about.tobuf() + bytes(1024)), tmp_path)
