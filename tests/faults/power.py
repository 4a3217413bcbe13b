"""A disk that forgets at a power cut what was not flushed: written into the API's process, played after kill -9.

The API runs with a `sitecustomize` of ours on its PYTHONPATH, which notes beside the store how much of each file and which
names of each folder a flush has made durable. `cut` then takes away everything else. With `swapped` the same disk flushes
a second late, so that a commit overtakes it: the comparison with a ledger must find what is lost.
"""

from __future__ import annotations

import os
from pathlib import Path

NOTES = "FAULTS_NOTES"
SWAPPED = "FAULTS_SWAPPED"
SITECUSTOMIZE = """
import os, stat, threading

_notes = os.open(os.environ["FAULTS_NOTES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
_fdatasync, _fsync = os.fdatasync, os.fsync


def _noting(flush):
    def noted(descriptor, size=None):
        descriptor = descriptor if isinstance(descriptor, int) else descriptor.fileno()
        path, found = os.readlink(f"/proc/self/fd/{descriptor}"), os.fstat(descriptor)
        names = os.listdir(path) if stat.S_ISDIR(found.st_mode) else ()  # before the flush: what comes meanwhile may be missed by it
        flush(descriptor)
        size = found.st_size if size is None else size
        lines = [f"name\\t{path}/{name}\\n" for name in names] if names or stat.S_ISDIR(found.st_mode) else [f"size\\t{size}\\t{path}\\n"]
        os.write(_notes, "".join(lines).encode())
    return noted


def _late(flush):
    def late(descriptor):
        copy, size = os.dup(descriptor), os.fstat(descriptor).st_size  # what came meanwhile has a late flush of its own
        timer = threading.Timer(1.0, lambda: (flush(copy, size), os.close(copy)))
        timer.daemon = True
        timer.start()
    return late


os.fsync = _noting(_fsync)
os.fdatasync = _late(_noting(_fdatasync)) if os.environ.get("FAULTS_SWAPPED") else _noting(_fdatasync)
"""


def forgetful(folder: Path, *, swapped: bool) -> dict[str, str]:
    """What the API's environment needs to run on such a disk."""
    site = folder / "site"
    site.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text(SITECUSTOMIZE)
    notes = folder / "notes"
    notes.touch()
    inherited = [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
    return {"PYTHONPATH": os.pathsep.join([str(site), *inherited]), NOTES: str(notes), SWAPPED: "1" if swapped else ""}


def cut(notes: Path, store: Path) -> int:
    """Take away what was never flushed; how many bytes. The API must not run."""
    names, sizes = _read(notes)
    gone = 0
    for path in sorted(store.rglob("*.seg")):
        chain = [path, *path.parents]
        durable = all(str(part) in names for part in chain[: chain.index(store)])
        kept, size = (sizes.get(str(path), 0) if durable else 0), path.stat().st_size
        if kept < size:
            gone += size - kept
            os.truncate(path, kept)
        if not durable:
            path.unlink()
    return gone


def _read(notes: Path) -> tuple[set[str], dict[str, int]]:
    """(paths whose name is durable, flushed size of each file)."""
    names: set[str] = set()
    sizes: dict[str, int] = {}
    for line in notes.read_text().splitlines():
        kind, rest = line.split("\t", 1)
        if kind == "name":
            names.add(rest)
        else:
            size, path = rest.split("\t")
            sizes[path] = max(int(size), sizes.get(path, 0))
    return names, sizes
