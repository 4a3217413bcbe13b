"""A posted final state is put over a task's files in real boxes: what it adds, what it overwrites, and what it deletes."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from inspector.environments.protocol import Unreadable
from inspector.sandbox.protocol import Backend, Layer
from inspector.worker.regrading import _final

BEFORE = {"/app/a": b"a", "/app/b": b"b", "/app/data/x": b"x", "/app/data/deep/y": b"y", "/app/keep/z": b"z"}


@pytest.fixture(scope="module")
def initial(boxes: Backend) -> Layer:
    """What a task begins with."""
    with boxes.create() as box:
        for path, data in BEFORE.items():
            box.write(path, data)
        return box.snapshot()


def put(folder: Path, files: Mapping[str, bytes]) -> Path:
    path = folder / "state"
    with tarfile.open(path, "w") as tar:
        for name, data in files.items():
            about = tarfile.TarInfo(name)
            about.size = len(data)
            tar.addfile(about, io.BytesIO(data))
    return path


def over(boxes: Backend, initial: Layer, folder: Path, files: Mapping[str, bytes]) -> dict[str, str]:
    """The files below /app once a state was put over what a task begins with."""
    layers = _final(put(folder, files), folder / "files", boxes).layers
    with boxes.create([initial, *layers]) as box:
        found = box.run(["/bin/sh", "-c", 'cd /app && find . -type f | while read -r f; do printf "%s=" "$f"; cat "$f"; echo; done'])
    assert found.ok, found.stderr
    return dict(line.removeprefix("./").split("=", 1) for line in sorted(found.stdout.decode().splitlines()))


@pytest.mark.parametrize(
    ("files", "now"),
    [
        ({"app/a": b"A", "app/n": b"n"}, {"a": "A", "b": "b", "data/deep/y": "y", "data/x": "x", "keep/z": "z", "n": "n"}),
        ({"app/.wh.a": b""}, {"b": "b", "data/deep/y": "y", "data/x": "x", "keep/z": "z"}),
        ({"app/.wh.data": b""}, {"a": "a", "b": "b", "keep/z": "z"}),
        ({"app/data/.wh..wh..opq": b"", "app/data/n": b"n"}, {"a": "a", "b": "b", "data/n": "n", "keep/z": "z"}),
        ({"app/.wh.a": b"", "app/a": b"A"}, {"a": "A", "b": "b", "data/deep/y": "y", "data/x": "x", "keep/z": "z"}),
        ({"app/.wh.data": b"", "app/data/n": b"n"}, {"a": "a", "b": "b", "data/n": "n", "keep/z": "z"}),
        ({"app/.wh.never there": b"", "app/.wh.-rf\n*": b""}, {"a": "a", "b": "b", "data/deep/y": "y", "data/x": "x", "keep/z": "z"}),
    ],
    ids=["added", "a file", "a folder", "an emptied folder", "replaced", "a folder replaced", "odd names"],
)
def test_a_state_adds_overwrites_and_deletes(boxes: Backend, initial: Layer, tmp_path: Path, files: dict[str, bytes], now: dict[str, str]) -> None:
    assert over(boxes, initial, tmp_path, files) == now


@pytest.mark.parametrize("name", ["app/.wh...", "app/.wh.", ".wh..wh..opq", "app/.wh..wh.aufs", "app/.wh.a/b"])
def test_a_state_with_a_hostile_deletion_cannot_be_read(boxes: Backend, tmp_path: Path, name: str) -> None:
    with pytest.raises(Unreadable, match="final state"):
        _final(put(tmp_path, {name: b""}), tmp_path / "files", boxes)
