"""Data sets of rows: what is read, and how what cannot be read is named."""

from __future__ import annotations

import gzip
import json
import os

import pytest

from inspector.environments import rows as reading
from inspector.environments.protocol import Unreadable
from inspector.environments.rows import read_rows
from inspector.environments.trees import read_file, read_tree


@pytest.mark.parametrize("form", ["lines", "list", "gzip", "marked"])
def test_every_form_reads_alike(tmp_path, form):
    values = [{"a": 1}, {"a": "ä"}]
    lines = "".join(f"{json.dumps(value)}\n\n" for value in values).encode()
    data = {"lines": lines, "list": json.dumps(values).encode(), "gzip": gzip.compress(lines), "marked": b"\xef\xbb\xbf" + lines}[form]
    (tmp_path / "rows").write_bytes(data)
    assert [row.value for row in read_rows(tmp_path / "rows")] == values


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "no rows"),
        (b'{"a": 1}\n{"a"\n', "rows:2: "),
        (b'{"a": 1}\n[1]\n', r"rows:2: \[1\] is not an object"),
        (b'{"a": "\xff"}\n', "rows:1: "),
        (b"[" * 100_000, "rows: "),
        (b"\x1f\x8bnonsense", "gzip"),
        (gzip.compress(b"{}", mtime=0)[:-6], "gzip"),
        (b"NaN\n", "rows:1: "),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, data, said):
    (tmp_path / "rows").write_bytes(data)
    with pytest.raises(Unreadable, match=said):
        read_rows(tmp_path / "rows")


def test_a_small_file_that_inflates_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "DATA_BYTES", 1 << 20)
    (tmp_path / "rows").write_bytes(gzip.compress(b"\n" * (4 << 20)))
    with pytest.raises(Unreadable, match="inflates"):
        read_rows(tmp_path / "rows")


def test_links_and_pipes_are_left_out_and_never_followed(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").write_text("x")
    os.symlink("/etc/passwd", tmp_path / "a" / "link")
    os.symlink("/etc", tmp_path / "etc")
    os.mkfifo(tmp_path / "pipe")
    tree = read_tree(tmp_path)
    assert [file.path for file in tree.files] == ["a/file"]
    assert len(tree.left_out) == 3
    for path in ("a/link", "etc/passwd", "../x", "pipe", "a"):
        with pytest.raises(Unreadable):
            read_file(tmp_path, path)


def test_a_digest_speaks_of_names_contents_and_who_may_run(tmp_path):
    (tmp_path / "one").write_text("x")
    first = read_tree(tmp_path).digest()
    os.utime(tmp_path / "one", (0, 0))
    assert read_tree(tmp_path).digest() == first
    (tmp_path / "one").chmod(0o755)
    second = read_tree(tmp_path).digest()
    (tmp_path / "one").rename(tmp_path / "two")
    assert len({first, second, read_tree(tmp_path).digest()}) == 3


def test_too_much_is_refused(tmp_path):
    for number in range(5):
        (tmp_path / str(number)).write_text("x")
    with pytest.raises(Unreadable, match="more than 4 files"):
        read_tree(tmp_path, files=4)
    with pytest.raises(Unreadable, match="or 3 bytes"):
        read_tree(tmp_path, size=3)
    (tmp_path / os.fsdecode(b"\xff")).write_text("x")
    with pytest.raises(Unreadable, match="not UTF-8"):
        read_tree(tmp_path)
