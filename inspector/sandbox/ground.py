"""What a box stands on: a name that no other has, a disk of its own in memory, and its limits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from inspector.sandbox import kernel, stage
from inspector.sandbox.cgroups import Group
from inspector.sandbox.protocol import Broken, Limits
from inspector.sandbox.stage import SEPARATOR, Stage


class Ground(NamedTuple):
    """For one box."""

    name: str
    disk: Path
    group: Group


def break_ground(here: Stage, limits: Limits, user: int) -> Ground:
    """A ground that nobody has used. Raises Broken."""
    name = here.next_name()
    ground = Ground(name, here.folder / name.rpartition(SEPARATOR)[2], here.groups.take(limits))
    try:
        _make_disk(ground.disk, limits, user)
    except OSError as error:
        stage.clear(ground.disk)
        ground.group.remove()
        raise Broken(f"no disk for a box: {error}") from error
    return ground


def _make_disk(disk: Path, limits: Limits, user: int) -> None:
    """A file system of its own in memory, with room for so many bytes and files."""
    disk.mkdir()
    options = f"size={max(1 << 16, limits.disk_bytes)},nr_inodes={max(16, limits.inodes)},uid={user},gid={user},mode=0700"
    kernel.mount("box", disk, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, options)
    for name in ("u", "w"):
        (disk / name).mkdir(mode=0o755)
        os.chown(disk / name, user, user)


def clear(ground: Ground, here: Stage) -> None:
    """Take it away once nobody stands on it. Raises Broken and OSError."""
    kernel.unmount(ground.disk)
    ground.disk.rmdir()
    here.groups.give(ground.group)
