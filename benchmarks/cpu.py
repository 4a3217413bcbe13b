"""CPU that processes have used, with all that they started, read from /proc."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
STATE, PARENT, USER, CHILDREN_SYSTEM = 0, 1, 11, 14  # fields of /proc/PID/stat after the name


def used(roots: Mapping[str, int]) -> dict[str, float]:
    """Seconds of user and system time by root: of its processes that live, and of those among them that ended and were waited for."""
    spent, parents = _processes()
    found = dict.fromkeys(roots, 0.0)
    names = {pid: name for name, pid in roots.items()}
    for pid, seconds in spent.items():
        if name := _root(pid, parents, names):
            found[name] += seconds
    return found


def _root(pid: int, parents: Mapping[int, int], names: Mapping[int, str]) -> str | None:
    while pid in parents:
        if pid in names:
            return names[pid]
        pid = parents[pid]
    return None


def _processes() -> tuple[dict[int, float], dict[int, int]]:
    spent, parents = {}, {}
    for pid, fields in _stats():
        spent[pid] = sum(map(int, fields[USER : CHILDREN_SYSTEM + 1])) * TICK_S
        parents[pid] = int(fields[PARENT])
    return spent, parents


def _stats() -> Iterable[tuple[int, list[str]]]:
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                yield int(entry), Path(f"/proc/{entry}/stat").read_text(errors="replace").rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended while we looked
