"""The neutral place where boxes stand while they live, by owner: a process that is known by its number and the time of its start."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
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


def store(folder: Path | None) -> Path:
    """Where layers are kept."""
    return (folder or PLACE) / "layers"


def owner_name(pid: int | None = None) -> str:
    """Names a living process for good: where its number counts, its number, and when it started."""
    pid = pid or os.getpid()
    return SEPARATOR.join((f"{os.stat('/proc/self/ns/pid').st_ino:x}", str(pid), started(pid) or "0"))


def started(pid: int) -> str | None:
    """When a process started, in ticks since the machine did; None where there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, *rest = text.rpartition(")")[2].split()
    return None if state in "ZX" else rest[18]


@dataclass(slots=True)
class Stage:
    """The folder of one owner: the lowest layer, a window on the store of layers, and a disk for each box."""

    name: str
    root: Root
    cgroups: Cgroups
    windows: Mapping[str, Path]  # place in a box -> where its content is seen
    groups: GroupPool = field(init=False)
    pid: int = field(default_factory=os.getpid)
    numbers: count[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.groups = GroupPool(self.cgroups, self.next_name)

    def next_name(self) -> str:
        """A name that no other box and no other group has."""
        return f"{self.name}{SEPARATOR}{next(self.numbers)}"

    @property
    def folder(self) -> Path:
        """Where it is."""
        return PLACE / self.name

    def reachable(self, program: str) -> str:
        """The path by which the payload's user finds a program, which may lie among packages that he may not walk to."""
        for outside, inside in Python.ours().binds:
            if program.startswith(f"{outside}/"):
                return str(self.windows[inside] / program[len(outside) + 1 :])
        return program

    @property
    def layers(self) -> Path:
        """The store, by a path that says nothing of us and that the payload's user may walk."""
        return self.folder / "l"

    def close(self) -> None:
        """Take it away, unless we are a fork of its owner."""
        if self.pid == os.getpid():
            self.groups.close()
            clear(self.folder)


def raise_stage(kept: Path, user: int, groups: Cgroups) -> Stage:
    """Make the folder of this process. Raises Broken."""
    name = owner_name()
    folder = PLACE / name
    try:
        PLACE.mkdir(mode=0o711, exist_ok=True)
        _only_ours(PLACE)
        clear(folder)
        (folder / "r").mkdir(parents=True)
        folder.chmod(0o711)
        kept.mkdir(parents=True, exist_ok=True)
        kept.chmod(0o711)
        _show(kept, folder / "l")
        windows = {inside: folder / f"p{number}" for number, (_, inside) in enumerate(Python.ours().binds)}
        for outside, inside in Python.ours().binds:
            _show(Path(outside), windows[inside])
        return Stage(name, build(folder / "r", user, windows.__getitem__), groups, windows)
    except OSError as error:
        raise Broken(f"no place for boxes: {error}") from error


def _show(host: Path, window: Path) -> None:
    """Folders that the payload's user may not walk to, or whose names say who we are, are seen through a window."""
    window.mkdir()
    kernel.mount(str(host), window, None, kernel.MS_BIND)


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
    """Mounts on and below a folder, the last first."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [Path(place) for place in reversed([line.split()[4] for line in lines]) if f"{place}/".startswith(f"{folder}/")]
