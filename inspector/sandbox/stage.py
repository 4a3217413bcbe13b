"""The neutral place where boxes stand while they live, by owner: a process that is known by its number and the time of its start."""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from inspector.sandbox import kernel
from inspector.sandbox.cgroups import Cgroups
from inspector.sandbox.group_pool import GroupPool
from inspector.sandbox.protocol import Broken
from inspector.sandbox.root import Python, Root, build

PLACE = Path("/var/tmp/boxes")  # noqa: S108 - seen by what runs in a box, so it says nothing of us; only root writes there
SEPARATOR = "-"


def owner_name(pid: int | None = None) -> str:
    """Names a living process for good: where its number counts, its number, and when it started."""
    pid = pid or os.getpid()
    return SEPARATOR.join((f"{os.stat('/proc/self/ns/pid').st_ino:x}", str(pid), started(pid) or "0"))


def started(pid: int) -> str | None:
    """When a process started, in ticks since the machine did; None where there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, *rest = text.rpartition(b")")[2].decode().split()  # what stands before is a name, which need be no text
    return None if state in "ZX" else rest[18]


_numbers = count(1)  # of this process, for all of its stages


@dataclass(slots=True)
class Stage:
    """A folder of its owner, one for each backend: the lowest layer, windows on stores of layers, and a disk for each box."""

    name: str  # of the owner
    folder: Path
    root: Root
    cgroups: Cgroups
    windows: Mapping[str, Path]  # place in a box -> where its content is seen
    store: Path  # of layers
    groups: GroupPool = field(init=False)
    stores: dict[Path, Path] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    pid: int = field(default_factory=os.getpid)

    def __post_init__(self) -> None:
        self.groups = GroupPool(self.cgroups, self.next_name)

    def next_name(self) -> str:
        """A name that no other box and no other group has."""
        return f"{self.name}{SEPARATOR}{next(_numbers)}"

    def reachable(self, program: str) -> str:
        """The path by which the payload's user finds a program, which may lie among packages that he may not walk to."""
        for outside, inside in Python.ours().binds:
            if program.startswith(f"{outside}/"):
                return str(self.windows[inside] / program[len(outside) + 1 :])
        return program

    def seen(self, layer: Path) -> Path:
        """A layer by a path that says nothing of us and that the payload's user may walk. Raises OSError."""
        with self.lock:
            if layer.parent not in self.stores:
                window = self.folder / f"l{len(self.stores)}"
                _show(layer.parent, window)
                self.stores[layer.parent] = window
            return self.stores[layer.parent] / layer.name

    def close(self) -> None:
        """Take it away, unless we are a fork of its owner."""
        if self.pid == os.getpid():
            self.groups.close()
            clear(self.folder)
            with suppress(OSError):  # another stage of ours
                self.folder.parent.rmdir()


def raise_stage(kept: Path | None, user: int, groups: Cgroups) -> Stage:
    """Make the folder of this process. Layers are kept in the folder `kept`, or with the stage, and then they go with it. Raises Broken."""
    name = owner_name()
    folder = PLACE / name / str(next(_numbers))
    try:
        PLACE.mkdir(mode=0o711, exist_ok=True)
        _only_ours(PLACE)
        (folder / "r").mkdir(parents=True)
        (folder / "e").mkdir()
        folder.parent.chmod(0o711)
        folder.chmod(0o711)
        store = (kept or folder) / "layers"
        store.mkdir(parents=True, exist_ok=True)
        store.chmod(0o711)
        windows = {inside: folder / f"p{number}" for number, (_, inside) in enumerate(Python.ours().binds)}
        for outside, inside in Python.ours().binds:
            _show(Path(outside), windows[inside])
            if outside != inside:
                _call_nothing(windows[inside], folder / "e")
        return Stage(name, folder, build(folder / "r", user, windows.__getitem__), groups, windows, store)
    except OSError as error:
        raise Broken(f"no place for boxes: {error}") from error


def _show(host: Path, window: Path) -> None:
    """Folders that the payload's user may not walk to, or whose names say who we are, are seen through a window."""
    window.mkdir()
    kernel.mount(str(host), window, None, kernel.MS_BIND)


def _call_nothing(window: Path, empty: Path) -> None:
    """A table of mounts says where on its disk a window's content lies; of a file system made of it, that table says the window."""
    with suppress(OSError):  # where none can be made of it, the content is seen all the same
        kernel.mount("box", window, "overlay", kernel.MS_RDONLY | kernel.MS_NOSUID | kernel.MS_NODEV, f"lowerdir={window}:{empty}")


def _only_ours(place: Path) -> None:
    about = place.lstat()
    if place.is_symlink() or about.st_uid != os.geteuid() or about.st_mode & 0o022:
        raise Broken(f"{place} belongs to someone else")


def clear(folder: Path) -> None:
    """Unmount all that is mounted on and below a folder of ours, then remove it."""
    for place in mounted(folder):
        kernel.unmount(place)
    if not mounted(folder):
        shutil.rmtree(folder, ignore_errors=True)


def mounted(folder: Path) -> list[Path]:
    """Mounts on and below a folder, the last first; the kernel names them by their real places."""
    lines, real = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines(), os.path.realpath(folder)
    places = [re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), line.split()[4]) for line in lines]
    return [Path(place) for place in reversed(places) if f"{place}/".startswith(f"{real}/")]
