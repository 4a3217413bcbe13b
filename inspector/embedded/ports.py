"""Finds free ports, and says who holds one that is not; refuses to serve beyond this machine unguarded."""

from __future__ import annotations

import ipaddress
import os
import socket
from pathlib import Path
from typing import Literal, NamedTuple

from inspector.embedded.processes import PROC, CannotStart
from inspector.showable import showable

LISTENING = "0A"  # in /proc/net/tcp
Guard = Literal["tls", "oidc"]


class Ports(NamedTuple):
    """Where the two doors listen."""

    api: int
    dashboard: int

    @classmethod
    def free(cls, host: str = "127.0.0.1") -> Ports:
        """Two ports that nobody listens on now."""
        with _bound(host, 0) as first, _bound(host, 0) as second:
            return cls(first.getsockname()[1], second.getsockname()[1])


def require_free(host: str, port: int, setting: str) -> None:
    """Raise CannotStart naming the port, the setting that moves it and, where /proc tells, the process that holds it."""
    try:
        _bound(host, port).close()
    except OSError as error:
        pid = listener(port)
        holder = f"process {pid} ({_command(pid)}) listens there" if pid else error.strerror
        raise CannotStart(f"port {port} on {host} cannot be used: {holder}; choose another with {setting}") from error


def listener(port: int) -> int | None:
    """The process that listens on a TCP port of this machine; None when nobody does or /proc does not show it to us."""
    inodes = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    for entry in PROC.iterdir():
        if inodes and entry.name.isdigit() and inodes & _sockets(entry):
            return int(entry.name)
    return None


def require_guarded(host: str, guard: Guard | None) -> None:
    """Raise CannotStart when others than this machine could reach us and nothing in front protects keys and logins."""
    if guard is None and not _loopback(host):
        raise CannotStart(
            f"refusing to listen on {host}: keys and logins would cross the network in the clear; "
            "put TLS or an OIDC proxy in front and say so, or stay on 127.0.0.1"
        )


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # a name may lead anywhere


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    bound = socket.socket(family, kind, protocol)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the servers do: what only waits to close is no obstacle
    try:
        bound.bind(address)
        bound.listen(1)
    except OSError:
        bound.close()
        raise
    return bound


def _listening_inodes(port: int) -> list[str]:
    rows = [line.split() for table in ("tcp", "tcp6") if (PROC / "net" / table).exists() for line in (PROC / "net" / table).read_text().splitlines()[1:]]
    return [row[9] for row in rows if row[3] == LISTENING and int(row[1].rpartition(":")[2], 16) == port]


def _sockets(process: Path) -> set[str]:
    try:
        return {_link(descriptor) for descriptor in (process / "fd").iterdir()}
    except OSError:  # gone meanwhile, or another user's
        return set()


def _link(descriptor: Path) -> str:
    try:
        return os.readlink(descriptor)
    except FileNotFoundError:  # closed meanwhile
        return ""


def _command(pid: int) -> str:
    try:
        return showable((PROC / str(pid) / "comm").read_text(errors="replace").strip())
    except OSError:
        return "gone meanwhile"
