"""Becomes a child of the stack: dies with its parent, as the user that it is to be, with no signal blocked or ignored.

A program of its own (`launch.py PARENT DEATH_SIGNAL UID:GID|- COMMAND…`), because what it does between fork and exec cannot be
done safely from a process with threads, and because the parent death signal is lost when the user changes after it was set.
"""

import ctypes
import os
import resource
import signal
import sys

PR_SET_PDEATHSIG = 1
OPEN_FILES = 8192  # a long poll holds one; far below the hard limit, which some programs walk through when they fork


def main(parent: str, death_signal: str, user: str, *command: str) -> None:
    """Never returns: the process becomes `command`, or ends with status 127 when its parent is already gone."""
    if user != "-":
        _become(*map(int, user.split(":")))
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
    if os.getppid() != int(parent):  # it died before the line above
        sys.exit(127)
    _raise_open_files()
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and an ignored signal stays ignored over exec
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execv(command[0], command)  # noqa: S606
    except OSError as error:
        sys.exit(f"{command[0]} cannot be run: {error.strerror}")


def _become(uid: int, gid: int) -> None:
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


def _raise_open_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))


if __name__ == "__main__":
    main(*sys.argv[1:])
