"""Starts bwrap: as a user that is nobody on the machine, held at its gate until limits are on, then let go."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from inspector.sandbox.cgroups import Group
from inspector.sandbox.files import sayable
from inspector.sandbox.process import Child, ready, send, start
from inspector.sandbox.protocol import Broken, Limits, Network, Refused
from inspector.sandbox.root import Root

ARGUMENTS, FILTER, ABOUT, GATE = 4, 5, 6, 7  # descriptors of bwrap; 3 is for the command
SETUP_S = 20.0  # for bwrap to say who it is, and for the kernel to end what was killed
OPEN_FILES = 4096
SHARED_MEMORY = 64 << 20  # of /dev/shm, never more than the memory of the box
LOCKED = 64 << 10
MARK = "BOX"  # in the environment of bwrap itself, by which a later reaper knows whose it was


@dataclass(frozen=True, slots=True)
class Program:
    """What boxes are made with."""

    bwrap: str
    chroot: str
    user: int
    rules: bytes  # the system call filter


@dataclass(slots=True)
class Running:
    """A box at work: bwrap outside, its init inside, whose end is the end of all that ran there."""

    monitor: Child
    init: int  # pidfd
    gate: int

    @property
    def was_set_up(self) -> bool:
        """Whether bwrap went through its gate: what it says after that is the command's word."""
        return not ready(self.gate, 0)

    def end(self) -> int:
        """Kill what is left in the box; the exit code of bwrap once all of it is gone. Raises Broken."""
        send(self.init, signal.SIGKILL)
        code = self.monitor.wait(SETUP_S)
        if code is None or not ready(self.init, SETUP_S):
            raise Broken("processes of a box do not end")
        return code

    def close(self) -> None:
        """End it and let go of it."""
        send(self.init, signal.SIGKILL)
        self.monitor.close()
        _adopt(self.init)
        os.close(self.init)
        os.close(self.gate)


def _adopt(init: int) -> None:
    """Where orphans come to us, as in a container without an init, the box's init is ours to bury."""
    try:
        os.waitid(os.P_PIDFD, init, os.WEXITED | os.WNOHANG)
    except ChildProcessError:
        return


def arguments(root: Root, layers: Sequence[Path], disk: Path, network: Network, limits: Limits) -> list[str]:
    """bwrap's options for a box: everything apart from the command and its surroundings."""
    given = ["--unshare-all", "--unshare-user", "--disable-userns", "--uid", "0", "--gid", "0", "--cap-drop", "ALL", "--hostname", "box"]
    given += ["--die-with-parent", "--new-session", "--clearenv", *(["--share-net"] if network is Network.ON else [])]
    for layer in (root.folder, *layers):
        given += ["--overlay-src", str(layer)]
    given += ["--overlay", str(disk / "u"), str(disk / "w"), "/"]
    for host, inside in root.binds:
        given += ["--ro-bind", host, inside]
    given += ["--proc", "/proc", "--ro-bind", "/dev/null", "/proc/cmdline", "--dev", "/dev", "--remount-ro", "/dev"]
    given += ["--perms", "1777", "--size", str(min(SHARED_MEMORY, limits.memory_bytes)), "--tmpfs", "/dev/shm"]  # noqa: S108 - a place in the box
    if network is Network.ON:
        given += [word for name in ("resolv.conf", "hosts") for word in ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")]
    return given


def surroundings(environment: Mapping[str, str], cwd: str) -> list[str]:
    """bwrap's options for one command. Raises Refused."""
    for name, value in environment.items():
        if not name or "=" in name or not sayable(name, value):
            raise Refused(f"no environment variable can be called {name[:100]!r} or hold what it holds")
    return [word for pair in environment.items() for word in ("--setenv", *pair)] + ["--chdir", cwd]


def launch(program: Program, options: Sequence[str], command: Sequence[str], streams: Mapping[int, int], group: Group, limits: Limits, mark: str) -> Running:
    """Start a command in a box, its limits on before its first step. Raises Broken and Refused."""
    if not command or not sayable(*command, *options):
        raise Refused("a command has at least a name, and nothing in it that is no text")
    group.forgive(limits)
    with ExitStack() as stack:
        about, about_in = _pipe(stack)
        gate_out, gate_in = os.pipe()
        stack.callback(os.close, gate_out)
        gate = os.open(f"/proc/self/fd/{gate_out}", os.O_RDWR | os.O_CLOEXEC)  # its own writer: if we die here, it waits for ever and not for us
        stack.callback(os.close, gate_in)
        failed = stack.enter_context(ExitStack())
        failed.callback(os.close, gate)
        descriptors = {**streams, ARGUMENTS: _file(stack, _words(options)), FILTER: _file(stack, program.rules), ABOUT: about_in, GATE: gate}
        monitor = start(_command_line(program, group, limits, command), descriptors, {MARK: mark})
        failed.callback(monitor.close)
        os.close(about_in)
        running = Running(monitor, _hold(about), gate)
        os.write(gate_in, b"1")
        failed.pop_all()
        return running


def _command_line(program: Program, group: Group, limits: Limits, command: Sequence[str]) -> list[str]:
    user = str(program.user)
    drop = [program.chroot, f"--userspec=+{user}:+{user}", "--groups=", "/"]  # the cheapest program at hand that changes who one is
    given = ["--args", str(ARGUMENTS), "--seccomp", str(FILTER), "--info-fd", str(ABOUT), "--block-fd", str(GATE), "--"]
    return [*entry(group, limits), *drop, program.bwrap, *given, *command]


def _words(options: Sequence[str]) -> bytes:
    return os.fsencode("".join(f"{word}\0" for word in options))


def _file(stack: ExitStack, data: bytes) -> int:
    descriptor = os.memfd_create("box", os.MFD_CLOEXEC)
    stack.callback(os.close, descriptor)
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _pipe(stack: ExitStack) -> tuple[int, int]:
    reading, writing = os.pipe()
    stack.callback(os.close, reading)
    return reading, writing


def _hold(about: int) -> int:
    """The pidfd of the box's init. Raises Broken."""
    text, deadline = b"", time.monotonic() + SETUP_S
    while b"}" not in text:
        if not ready(about, deadline - time.monotonic()) or not (more := os.read(about, 4096)):
            raise Broken("bwrap did not start")
        text += more
    pid = json.loads(text)["child-pid"]
    try:
        return os.pidfd_open(pid)  # held at the gate, so the number is still its own
    except ProcessLookupError as error:
        raise Broken("bwrap ended before its command") from error


def entry(group: Group, limits: Limits) -> list[str]:
    """The words of a shell that enters the control groups itself, which costs nothing where moving it would cost milliseconds, and limits itself."""
    wanted = [
        ("f", "FSIZE", limits.disk_bytes, 512),
        ("n", "NOFILE", OPEN_FILES, 1),
        ("l", "MEMLOCK", LOCKED, 1024),
        ("r", "RTPRIO", 0, 1),
        *([] if _piped() else [("c", "CORE", 0, 512)]),
    ]
    bounds = "; ".join(f"ulimit -{flag} {_within(name, wish) // unit}" for flag, name, wish, unit in wanted)
    script = f'set -e; for t in $1; do echo 0 >"$t"; done; {bounds}; shift; exec "$@"'
    return [*crash_guard(), "/bin/sh", "-c", script, "sh", " ".join(map(str, group.entrances()))]


def _within(name: str, wish: int) -> int:
    hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[1]  # not every root may raise it
    return wish if hard == resource.RLIM_INFINITY else min(wish, hard)


def crash_guard() -> list[str]:
    """Where the machine has a program for crashes, which would run outside: a limit of exactly one byte keeps it from being called; a shell cannot say that."""
    return [shutil.which("prlimit") or "prlimit", "--core=1:1"] if _piped() else []


@cache
def _piped() -> bool:
    return Path("/proc/sys/kernel/core_pattern").read_text().startswith("|")
