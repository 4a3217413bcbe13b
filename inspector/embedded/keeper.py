"""Ends what a dead stack left running, and says what could not be ended.

Every stack starts one (`main`, in a process of its own), which waits for it to be gone: its standard input ends when the stack does,
however that happens. The parent death signals end each child; the keeper also ends what those started and what does not obey.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

from inspector.embedded.folder import Folder
from inspector.embedded.processes import end
from inspector.embedded.users import SOCKETS

DISMISS_S = 30.0


def start(folder: Folder, lock: int) -> subprocess.Popen[bytes]:
    """A keeper for this process; it shares the lock, so the folder stays taken until it is done."""
    with (folder.logs / "keeper.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-P", "-c", "from inspector.embedded import keeper; keeper.main()", str(folder.path)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd="/",
            pass_fds=(lock,),
            start_new_session=True,
        )


def dismiss(keeper: subprocess.Popen[bytes]) -> None:
    """Let a keeper go whose stack has ended everything itself."""
    assert keeper.stdin
    keeper.stdin.close()
    keeper.wait(DISMISS_S)


def end_leftovers(folder: Folder) -> list[str]:
    """End what the folder's note names and still lives, in its order, and forget the note; returns the names of what was alive."""
    note = folder.read()
    if note is None:
        folder.forget()
        return []
    alive = [child.name for child in note.children if child.process.alive]
    for child in note.children:
        end(child.process, child.ladder)
    if Path(note.sockets).name.startswith(SOCKETS):
        shutil.rmtree(note.sockets, ignore_errors=True)
    folder.forget()
    return alive


def main() -> None:
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    sys.stdin.buffer.read()
    end_leftovers(Folder(Path(sys.argv[1])))
