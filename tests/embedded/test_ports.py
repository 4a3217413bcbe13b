"""Ports: free ones found, holders of taken ones named, the world outside refused."""

from __future__ import annotations

import os
import socket

import pytest

from inspector.embedded import CannotStart, Ports
from inspector.embedded.ports import listener, require_free, require_guarded


def test_free_ports_are_two_and_free():
    ports = Ports.free()
    assert ports.api != ports.dashboard
    for port in ports:
        require_free("127.0.0.1", port, "INSPECTOR_PORT")


def test_a_port_in_use_names_its_holder():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(
            CannotStart, match=rf"port {port} on 127.0.0.1 cannot be used: process {os.getpid()} \(.+\) listens there; choose another with INSPECTOR_PORT"
        ):
            require_free("127.0.0.1", port, "INSPECTOR_PORT")
    assert listener(port) is None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_this_machine_needs_no_guard(host):
    require_guarded(host, None)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", ""])
def test_beyond_this_machine_only_behind_a_guard(host):
    with pytest.raises(CannotStart, match="refusing to listen"):
        require_guarded(host, None)
    require_guarded(host, "tls")
