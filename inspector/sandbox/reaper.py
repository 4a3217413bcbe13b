"""Ends what a killed owner left: processes, control groups, mounts and folders, known by their names; what belongs to the living is not touched."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

from inspector.sandbox import cgroups, stage
from inspector.sandbox.launch import MARK
from inspector.sandbox.stage import SEPARATOR, owner_name, started

PARTS = 3  # of an owner's name: where its number counts, its number, when it started
NUMBER = re.compile(r"[0-9]{1,19}")  # whatever else: anyone may put anything into his own environment
DEPTH = 6  # of control groups that are searched


def reap(folder: Path | None = None) -> list[str]:
    """Clear away every dead owner of this machine; their names. Run it when a worker starts, for its folder of layers. Raises Broken."""
    here = owner_name().split(SEPARATOR)[0]
    processes, groups = list(_processes()), list(_groups())
    dead = sorted({owner for name in (*_owners(), *(mark for mark, _ in processes), *(group.name for group in groups)) if (owner := _dead(name, here))})
    for owner in dead:
        for group in groups:
            if _dead(group.name, here) == owner:
                cgroups.thaw(group)
        for mark, pid in processes:
            if _dead(mark, here) == owner:
                _kill(pid, mark)
        for group in groups:
            if _dead(group.name, here) == owner:
                cgroups.remove(group)
        stage.clear(stage.PLACE / owner)
    if folder is not None:
        _clear_half_made(folder / "layers", here)
    return dead


def _clear_half_made(store: Path, here: str) -> None:
    """Layers that were being copied when their owner died."""
    for name in os.listdir(store) if store.is_dir() else ():
        if name.startswith(".") and _dead(name[1:].rpartition(SEPARATOR)[0], here):
            shutil.rmtree(store / name, ignore_errors=True)


def _owners() -> list[str]:
    return os.listdir(stage.PLACE) if stage.PLACE.is_dir() else []


def _dead(name: str, here: str) -> str | None:
    """The owner in a name, if it is one of ours that no longer lives; of another container's processes we know nothing."""
    parts = name.split(SEPARATOR)
    if len(parts) not in (PARTS, PARTS + 1) or parts[0] != here or not all(NUMBER.fullmatch(part) for part in parts[1:]):
        return None
    return None if started(int(parts[1])) == parts[2] else SEPARATOR.join(parts[:PARTS])


def _processes() -> Iterator[tuple[str, int]]:
    """Every bwrap of ours, by the mark in its environment."""
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        if mark := _mark(pid):
            yield mark, pid


def _mark(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # gone meanwhile, or not ours to read
        return ""
    found = [word for word in words if word.startswith(f"{MARK}=".encode())]
    return found[0].decode(errors="replace").partition("=")[2] if len(found) == 1 else ""


def _kill(pid: int, mark: str) -> None:
    """By a descriptor, so that no other process that took the number meanwhile is hit."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if _mark(pid) == mark:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        os.close(pidfd)


def _groups() -> Iterator[Path]:
    """Control groups with a name like ours, wherever their owner stood."""
    for top in cgroups.tops():
        for at, folders, _ in os.walk(top):
            depth = len(Path(at).relative_to(top).parts)
            yield from (Path(at, name) for name in folders if name.count(SEPARATOR) == PARTS)
            if depth >= DEPTH:
                folders.clear()
