"""Compiled patterns are kept where they can be trusted, and threads and children scan with them."""

from __future__ import annotations

import os
import threading

import pytest

from inspector.signatures import compiled, compiled_cache, prefilter

pytestmark = pytest.mark.skipif(not prefilter.available(), reason="no hyperscan here")
PATTERNS = [compiled(source) for source in ("foo", "ba[rz]", r"\pL+x")]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("INSPECTOR_CACHE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept"


def candidates(text="a bar, and a foo"):
    return prefilter.HyperscanFilter(PATTERNS).candidates(text, text.encode())


def test_the_second_process_does_not_compile(folder, monkeypatch):
    assert candidates() == [0, 1]
    monkeypatch.setattr(prefilter, "_compiled", None)
    assert candidates() == [0, 1]


@pytest.mark.parametrize("spoil", [lambda data: data[:-1], lambda data: b"", lambda data: data[:200] + b"\0" + data[201:]])
def test_a_spoilt_file_is_made_anew(folder, spoil):
    candidates()
    (kept,) = folder.iterdir()
    kept.write_bytes(spoil(whole := kept.read_bytes()))
    assert candidates() == [0, 1]
    assert kept.read_bytes() == whole


def test_a_file_that_others_may_write_is_not_read(folder):
    candidates()
    (kept,) = folder.iterdir()
    kept.chmod(0o666)
    assert compiled_cache.read([b"x"]) is None
    assert candidates() == [0, 1]
    assert kept.stat().st_mode & 0o022 == 0


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("INSPECTOR_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert candidates() == [0, 1]


def test_threads_scan_at_once():
    one, answers = prefilter.HyperscanFilter(PATTERNS), []
    text = "a bar, " * 2000
    threads = [threading.Thread(target=lambda: answers.extend(one.candidates(text, text.encode()) for _ in range(50))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [[1]] * 200


def test_a_child_scans_with_what_its_parent_compiled():
    one = prefilter.HyperscanFilter(PATTERNS)
    assert one.candidates("foo", b"foo") == [0]
    child = os.fork()
    if not child:
        os._exit(0 if one.candidates("bar", b"bar") == [1] else 1)
    assert os.waitpid(child, 0)[1] == 0
