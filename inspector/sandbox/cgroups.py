"""Puts the processes of one box under limits and counts what they use: control groups of version 1, of version 2, or both side by side."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from inspector.sandbox.protocol import Broken, Limits

NEEDED = ("memory", "pids", "cpu")
OF_VERSION_1 = (*NEEDED, "cpuacct", "freezer")  # what version 2 has without a controller
PERIOD_US = 100_000
PATIENCE_S = 5.0  # for the kernel to let go of a group whose processes were killed


@dataclass(frozen=True, slots=True)
class Home:
    """Where groups of a controller may be made: below the group that we are in, so that its own limits hold for boxes too."""

    folder: Path
    unified: bool


@dataclass(frozen=True, slots=True)
class Cgroups:
    """What the machine offers, by controller."""

    homes: Mapping[str, Home]

    def missing(self) -> dict[str, str]:
        """Controllers without which limits cannot be given, and why."""
        return {f"cgroup {name}": reason for name in NEEDED if (reason := self._lack(name))}

    def _lack(self, name: str) -> str | None:
        if name not in self.homes:
            return f"no control group with the controller {name} is mounted, or it is not delegated to us"
        return None if os.access(self.homes[name].folder, os.W_OK) else f"{self.homes[name].folder} is not ours to write"

    def make(self, name: str, limits: Limits) -> Group:
        """A group of that name under these limits. Raises Broken."""
        group = Group({controller: home.folder / name for controller, home in self.homes.items()}, {c for c, home in self.homes.items() if home.unified})
        try:
            group.make(limits)
        except OSError as error:
            group.remove()
            raise Broken(f"no control group: {error}") from error
        return group


@dataclass(slots=True)
class Group:
    """The groups of one box, one folder for each hierarchy."""

    folders: Mapping[str, Path]
    unified: set[str]
    limits: Limits | None = None  # that were written last

    def _file(self, controller: str, name: str) -> str:
        return f"{self.folders[controller]}/{name}"  # joining paths would take most of the time

    def make(self, limits: Limits) -> None:
        """Make the folders and write the limits."""
        for folder in dict.fromkeys(self.folders.values()):
            folder.mkdir()
        self.limit(limits)

    def limit(self, limits: Limits) -> None:
        """Write the limits, in place of earlier ones. Raises OSError."""
        self.limits = None
        for path, value, needed in self._limits(limits):
            try:
                _put(path, value)
            except FileNotFoundError:
                if needed:
                    raise
        self.limits = limits

    def _limits(self, limits: Limits) -> Iterator[tuple[Path, str, bool]]:
        memory, pids, cpu = (self.folders[name] for name in NEEDED)
        quota = str(max(1000, int(limits.cpus * PERIOD_US)))
        if "memory" in self.unified:
            yield memory / "memory.max", str(limits.memory_bytes), True
            yield memory / "memory.swap.max", "0", False  # there where the machine has swap
        else:
            yield memory / "memory.memsw.limit_in_bytes", "-1", False  # never below the one that is written next
            yield memory / "memory.limit_in_bytes", str(limits.memory_bytes), True
            yield memory / "memory.memsw.limit_in_bytes", str(limits.memory_bytes), False
        yield pids / "pids.max", str(limits.pids), True
        if "cpu" in self.unified:
            yield cpu / "cpu.max", f"{quota} {PERIOD_US}", True
        else:
            yield cpu / "cpu.cfs_quota_us", quota, True

    def entrances(self) -> list[Path]:
        """Files to which a process of one thread writes 0 to be in, with all that it starts from then on."""
        found = {folder: "cgroup.procs" if name in self.unified else "tasks" for name, folder in self.folders.items()}  # `tasks` needs no lock of the machine
        return [folder / name for folder, name in found.items()]

    def cpu_s(self) -> float:
        """CPU time used so far by all that ran here."""
        if "cpuacct" in self.folders:
            return int(_get(self._file("cpuacct", "cpuacct.usage"))) / 1e9
        return int(_fields(self._file("cpu", "cpu.stat")).get("usage_usec", 0)) / 1e6

    def out_of_memory(self) -> int:
        """How many processes were killed here for want of memory."""
        name = "memory.events" if "memory" in self.unified else "memory.oom_control"
        return int(_fields(self._file("memory", name)).get("oom_kill", 0))

    def peak_bytes(self) -> int | None:
        """The most memory used at once so far, files of the box included; None where the kernel does not say."""
        name = "memory.peak" if "memory" in self.unified else "memory.max_usage_in_bytes"
        try:
            return int(_get(self._file("memory", name)))
        except OSError:
            return None

    def memory_bytes(self) -> int:
        """Memory in use."""
        name = "memory.current" if "memory" in self.unified else "memory.usage_in_bytes"
        return int(_get(self._file("memory", name)))

    def forget_peak(self) -> None:
        """Let the peak be that of what comes; in version 2 it stays that of the box."""
        if "memory" not in self.unified:
            _put(self._file("memory", "memory.max_usage_in_bytes"), "0")

    def counted(self) -> int:
        """Processes that count against the limit: the living, and the dead whom the machine's init has not buried yet."""
        return int(_get(self._file("pids", "pids.current")))

    def forgive(self, limits: Limits) -> None:
        """Let those who are dead now not count against a command that starts; nobody lives here then. Raises Broken."""
        try:
            _put(self._file("pids", "pids.max"), str(limits.pids + self.counted()))
        except OSError as error:
            raise Broken(f"the control group of a box is gone: {error}") from error

    def is_empty(self) -> bool:
        """Whether nobody lives here; who is in one of the groups is in that of the processes."""
        return not members(self.folders["pids"])

    def pids(self) -> list[int]:
        """Who is in."""
        return sorted({pid for folder in dict.fromkeys(self.folders.values()) for pid in members(folder)})

    def freeze(self) -> None:
        """Have nobody in it run until `thaw`, whatever they do to each other. Raises Broken."""
        if "freezer" in self.folders:
            order, said, wanted = ("freezer.state", "FROZEN"), "freezer.state", "FROZEN"
        else:
            order, said, wanted = ("cgroup.freeze", "1"), "cgroup.events", "frozen 1"
        folder, deadline = self.folders.get("freezer", self.folders["pids"]), time.monotonic() + PATIENCE_S
        try:
            _put(folder / order[0], order[1])
            while wanted not in _get(folder / said).splitlines():
                if time.monotonic() > deadline:
                    raise Broken("processes of a box do not stand still")
                time.sleep(0.001)
        except OSError as error:
            raise Broken(f"this machine cannot hold a box still: {error}") from error

    def thaw(self) -> None:
        """Let them run again."""
        for folder in dict.fromkeys(self.folders.values()):
            thaw(folder)

    def remove(self) -> None:
        """Kill who is left and remove the folders. Raises Broken where the kernel does not let go."""
        for folder in dict.fromkeys(self.folders.values()):
            remove(folder)


def members(folder: Path) -> list[int]:
    """The processes of one group; none where it is gone."""
    try:
        return [int(pid) for pid in _get(f"{folder}/cgroup.procs").split() if pid != "0"]
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENODEV):
            return []
        raise


def thaw(folder: Path) -> None:
    """Let who is in a group run; in version 1 nobody who is held can be killed."""
    for name, value in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
        try:
            _put(folder / name, value)
        except FileNotFoundError:
            continue


def remove(folder: Path) -> None:
    """End every process of a group and remove it. Raises Broken."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            folder.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise Broken(f"the control group {folder.name} stays: {error.strerror}") from error
        for pid in members(folder):
            kill(pid)
        time.sleep(0.002)  # the kernel has no event for "empty" in version 1


def kill(pid: int) -> None:
    """SIGKILL, if it is still there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def find(mountinfo: str, membership: str) -> Cgroups:
    """Read what is mounted and where we are from the texts of /proc/self/mountinfo and /proc/self/cgroup."""
    ours = {name: path for _, names, path in (line.split(":", 2) for line in membership.splitlines()) for name in (names.split(",") if names else [""])}
    homes: dict[str, Home] = {}
    for folder, root, kind, options in _mounts(mountinfo):
        if kind == "cgroup":
            homes.update({name: Home(_home(folder, root, ours[name]), False) for name in options if name in OF_VERSION_1 and name in ours})
    for folder, root, kind, _ in _mounts(mountinfo):
        if kind == "cgroup2" and "" in ours:
            home = _home(folder, root, ours[""])
            homes = {**{name: Home(home, True) for name in _delegated(home, folder)}, **homes}
    return Cgroups(homes)


def here() -> Cgroups:
    """What this machine offers this process."""
    return find(_get(Path("/proc/self/mountinfo")), _get(Path("/proc/self/cgroup")))


def _mounts(mountinfo: str) -> Iterator[tuple[Path, str, str, list[str]]]:
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        root, folder = left.split()[3:5]
        kind, _, options = right.split(" ", 2)
        yield Path(folder), root, kind, options.split(",")


def _home(folder: Path, root: str, path: str) -> Path:
    inside = path.removeprefix(root) if root != "/" else path  # a container sees its own group as the top of the mount
    return folder / inside.lstrip("/")


def _delegated(home: Path, top: Path) -> list[str]:
    """The controllers that groups below `home` may use; asks for them where that is ours to ask."""
    try:
        wanted = [name for name in NEEDED if name in _get(home / "cgroup.controllers").split()]
    except OSError:
        return []
    if wanted and set(wanted) - set(_get(home / "cgroup.subtree_control").split()):
        _enable(home, top, wanted)
    return [name for name in wanted if name in _get(home / "cgroup.subtree_control").split()]


def _enable(home: Path, top: Path, wanted: list[str]) -> None:
    order = " ".join(f"+{name}" for name in wanted)
    try:
        _put(home / "cgroup.subtree_control", order)
    except OSError as error:
        if error.errno != errno.EBUSY or not _ours(home, top):
            return
        _step_down(home)
        _put(home / "cgroup.subtree_control", order)


def _ours(home: Path, top: Path) -> bool:
    """Whether the group with all that is in it is ours: a container's top, or delegated by systemd."""
    try:
        return home == top or os.getxattr(home, "user.delegate") == b"1"
    except OSError:
        return False


def _step_down(home: Path) -> None:
    """Version 2 gives controllers only below groups without processes of their own."""
    leaf = home / "service"
    leaf.mkdir(exist_ok=True)
    for pid in members(home):
        try:
            _put(leaf / "cgroup.procs", str(pid))
        except ProcessLookupError:
            continue


def _fields(path: Path | str) -> dict[str, str]:
    return {name: value for name, _, value in (line.partition(" ") for line in _get(path).splitlines())}


def _get(path: Path | str) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = b""
        while more := os.read(descriptor, 1 << 16):
            text += more
        return text.decode()
    finally:
        os.close(descriptor)


def _put(path: Path | str, value: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)


def tops() -> list[Path]:
    """Where hierarchies that boxes may use are mounted."""
    kinds = [(folder, kind, options) for folder, _, kind, options in _mounts(_get(Path("/proc/self/mountinfo")))]
    return [folder for folder, kind, options in kinds if kind == "cgroup2" or (kind == "cgroup" and set(OF_VERSION_1) & set(options))]
