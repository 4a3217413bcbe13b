"""Runs commands inside a box, one after the other, for a session: a script that is sent into the box and imports nothing of ours.

Each command comes with descriptors for its stdin, stdout and stderr; a message without descriptors ends the one that runs. What it answers
is the word of the box, and believed no further than that.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any  # takes longer to import than all the rest

CONTROL = 3


def main() -> None:
    """Serve until the other side hangs up."""
    control = socket.socket(fileno=CONTROL)
    control.set_inheritable(False)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control.sendall(b"\n")
    while (message := receive(control)) is not None:
        order, descriptors = message
        if descriptors:
            control.sendall(json.dumps(answer(control, order, descriptors)).encode() + b"\n")


def receive(control: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next message and what came with it; None at the end."""
    head, descriptors, _, _ = socket.recv_fds(control, 4, 3)
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    data = b""
    if len(head) < 4:
        return None
    while len(data) < int.from_bytes(head, "big"):
        if not (more := control.recv(int.from_bytes(head, "big") - len(data))):
            return None
        data += more
    return json.loads(data), descriptors


def answer(control: socket.socket, order: dict[str, Any], descriptors: list[int]) -> dict[str, int]:
    """Run a command to its end; how it ended."""
    try:
        pid = start(order, descriptors)
    except FileNotFoundError as error:
        return {"exit": 127 if error.filename != order["cwd"] else 126}
    except OSError:
        return {"exit": 126}
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    wait(control, pid)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return {"exit": code}


def start(order: dict[str, Any], descriptors: list[int]) -> int:
    """Start it as the head of a session of its own."""
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environment"], PWD=order["cwd"])
    actions = [(os.POSIX_SPAWN_DUP2, descriptor, number) for number, descriptor in enumerate(descriptors)]
    return os.posix_spawnp(order["argv"][0], order["argv"], os.environ, file_actions=actions, setsid=True, setsigdef=[signal.SIGINT, signal.SIGPIPE])


def wait(control: socket.socket, pid: int) -> None:
    """Until it has ended; kill it and its group if the other side says so."""
    ended = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(control, select.POLLIN)
    while all(descriptor != ended for descriptor, _ in poll.poll()):
        if receive(control) is None:
            sys.exit()
        os.killpg(pid, signal.SIGKILL)
    os.close(ended)


if __name__ == "__main__":
    main()
