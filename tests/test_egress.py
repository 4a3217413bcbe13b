"""Nothing is called that is not public, unless the operator named it; and every call ends."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.client.loop import BackgroundLoop
from inspector.egress import Egress, NoAnswer, Refused
from inspector.settings import BadSetting, Settings

CLOSED = Egress()
NOT_PUBLIC = [
    ip_network(text)
    for text in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "198.18.0.0/15",
        "224.0.0.0/4", "240.0.0.0/4", "::/128", "::1/128", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8", "2001:db8::/32",
    )
]  # fmt: skip
INNER = [network for network in NOT_PUBLIC if network.version == 4]


def addresses(network: Any) -> st.SearchStrategy[Any]:
    kind = IPv4Address if network.version == 4 else IPv6Address
    return st.integers(int(network.network_address), int(network.broadcast_address)).map(kind)


inner = st.sampled_from(INNER).flatmap(addresses)
FORMS: list[Callable[[IPv4Address], IPv6Address]] = [
    lambda v4: IPv6Address(0xFFFF << 32 | int(v4)),
    lambda v4: IPv6Address(int(v4)),
    lambda v4: IPv6Address(0x2002 << 112 | int(v4) << 80 | 1),
    lambda v4: IPv6Address(int(IPv6Address("64:ff9b::")) | int(v4)),
    lambda v4: IPv6Address(int(IPv6Address("64:ff9b:1::")) | int(v4)),
    lambda v4: IPv6Address(0x20010000 << 96 | 0x08080808 << 64 | (int(v4) ^ 0xFFFFFFFF)),
]


@given(st.sampled_from(NOT_PUBLIC).flatmap(addresses))
def test_no_address_that_is_not_public_is_called(address: Any) -> None:
    with pytest.raises(Refused):
        CLOSED.judge(address)


@given(inner, st.sampled_from(FORMS))
def test_nor_in_any_form_in_which_ipv6_holds_it(address: IPv4Address, form: Callable[[IPv4Address], IPv6Address]) -> None:
    with pytest.raises(Refused):
        CLOSED.judge(form(address))


@given(st.ip_addresses())
def test_what_is_called_is_public_and_what_is_named_is_called(address: Any) -> None:
    Egress(networks=(ip_network(address),)).judge(address)
    try:
        CLOSED.judge(address)
    except Refused:
        return
    assert address.is_global
    assert not any(address in network for network in NOT_PUBLIC if network.version == address.version)


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111"])
def test_public_ones_are_called(address: str) -> None:
    CLOSED.judge(ip_address(address))


@pytest.mark.parametrize(
    "address",
    ["http://example.org/", "https://example.org:22/", "https://user:word@example.org/", "https://example.org/#part", "file:///etc/passwd", "https:///x",
     "gopher://example.org", "https://" + "a" * 3000, "//example.org", "https://[::1", "\x00"],
)  # fmt: skip
def test_only_plain_https_addresses_have_the_right_form(address: str) -> None:
    with pytest.raises(Refused):
        CLOSED.admit(address)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "[::1]", "[::ffff:127.0.0.1]", "169.254.1.1", "0"]
)
def test_no_spelling_of_this_machine_is_called(host: str) -> None:
    with pytest.raises((Refused, NoAnswer)) as told:
        Egress(plain=True, ports=frozenset({80})).post(f"http://{host}/", b"", {})
    assert any(words in str(told.value) for words in ("is not public", "has no address", "is no address"))


def test_settings_are_read() -> None:
    read = Egress.of(Settings(egress_allow="10.0.0.0/8 Hooks.Internal ::1", egress_ports="443 8443", egress_plain=True))
    assert (read.hosts, read.ports, read.plain) == ({"hooks.internal"}, {443, 8443}, True)
    read.judge(ip_address("10.1.2.3"))
    for wrong in ("10.0.0.0/99", "10.0.0.1/8"):
        with pytest.raises(BadSetting, match="10"):
            Egress.of(Settings(egress_allow=wrong))


@contextmanager
def server(behave: Callable[[BaseHTTPRequestHandler], None], tls: ssl.SSLContext | None = None) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            behave(self)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    serving = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving.daemon_threads = True
    if tls is not None:
        serving.socket = tls.wrap_socket(serving.socket, server_side=True)
    thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield serving.server_address[1]
    finally:
        serving.shutdown()
        serving.server_close()


def open_to(port: int, **more: Any) -> Egress:
    return Egress(**{"networks": (ip_network("127.0.0.0/8"),), "ports": frozenset({port}), "plain": True, "deadline_s": 5.0} | more)


def answer(handler: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


def test_the_name_is_sent_while_the_address_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    async def once(self: object, host: str, port: int, **_: object) -> list[Any]:
        seen.append(host)
        return [(socket.AF_INET, 1, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(BackgroundLoop, "getaddrinfo", once)
    hosts = []
    with server(lambda handler: (hosts.append(handler.headers["Host"]), answer(handler, 200, b"ok"))[1]) as port:
        told = open_to(port).post(f"http://hooks.example:{port}/x", b"{}", {})
    assert (told.status, told.body, hosts, seen) == (200, b"ok", [f"hooks.example:{port}"], ["hooks.example"])


def test_a_host_is_called_wherever_it_lives_if_the_operator_names_it() -> None:
    with server(lambda handler: answer(handler, 204, b"")) as port:
        assert open_to(port, networks=(), hosts=frozenset({"localhost"})).post(f"http://localhost:{port}/", b"", {}).status == 204
        with pytest.raises(Refused):
            open_to(port, networks=()).post(f"http://localhost:{port}/", b"", {})


def test_a_redirect_is_an_answer_and_a_long_answer_is_cut() -> None:
    with server(lambda handler: answer(handler, 302, b"x" * 5000, Location="http://127.0.0.1:1/")) as port:
        told = open_to(port, answer_bytes=1000).post(f"http://127.0.0.1:{port}/", b"{}", {})
    assert (told.status, len(told.body), told.cut) == (302, 1000, True)


def drip(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    for _ in range(200):
        try:
            handler.wfile.write(b"x")
        except OSError:
            return
        time.sleep(0.05)


def test_an_answer_that_drips_in_ends_with_the_deadline() -> None:
    began = time.monotonic()
    with server(drip) as port, pytest.raises(NoAnswer, match="no whole answer"):
        open_to(port, deadline_s=0.5).post(f"http://127.0.0.1:{port}/", b"{}", {})
    assert time.monotonic() - began < 5


def test_a_certificate_must_be_the_names_although_the_address_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if (openssl := shutil.which("openssl")) is None:
        pytest.skip("no openssl here")
    made = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=hooks.example"]
    files = ["-addext", "subjectAltName=DNS:hooks.example", "-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "cert")]
    subprocess.run([openssl, *made, *files], check=True, capture_output=True, timeout=60)

    async def here(self: object, host: str, port: int, **_: object) -> list[Any]:
        return [(socket.AF_INET, 1, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(BackgroundLoop, "getaddrinfo", here)
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    with server(lambda handler: answer(handler, 200, b"ok"), own) as port:
        trusting = open_to(port, plain=False, authorities=str(tmp_path / "cert"))
        assert trusting.post(f"https://hooks.example:{port}/", b"{}", {}).body == b"ok"
        for address, egress in ((f"https://other.example:{port}/", trusting), (f"https://hooks.example:{port}/", open_to(port, plain=False))):
            with pytest.raises(NoAnswer, match="CERTIFICATE_VERIFY_FAILED"):
                egress.post(address, b"{}", {})


def test_where_nobody_is_there_is_no_answer() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        with pytest.raises(NoAnswer, match="ConnectError"):
            open_to(port).post(f"http://127.0.0.1:{port}/", b"", {})
