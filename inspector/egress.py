"""The one way out by HTTP: to addresses that a person registered, and never into the network that the service itself lives in.

An address is https on an allowed port unless the operator says otherwise. A name is resolved once, each of its addresses
is judged, and the call goes to one of those that passed: what the name says later does not matter. No redirect is
followed, no proxy is asked, and one limit holds for the whole call as another does for the size of the answer.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple, Self

import httpx

from inspector.client.loop import BackgroundLoop
from inspector.errors import InspectorError
from inspector.settings import BadSetting, Settings
from inspector.showable import showable

Address = IPv4Address | IPv6Address
LONGEST = 2000  # characters of an address
TRIED = 3  # addresses of a name
CONNECT_S = 5.0
_NAT64 = (ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48"))
_COMPATIBLE = ip_network("::/96")


class Refused(InspectorError):
    """An address that is not called; the message says why."""


class NoAnswer(InspectorError):
    """It was called, and no whole answer came."""


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes  # its beginning, where `cut`
    cut: bool
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Egress:
    """What may be called, and what a call may cost."""

    hosts: frozenset[str] = frozenset()  # called wherever they live
    networks: tuple[IPv4Network | IPv6Network, ...] = ()  # called although they are not public
    ports: frozenset[int] = frozenset({443})
    plain: bool = False  # http too
    deadline_s: float = 15.0
    answer_bytes: int = 1 << 20
    authorities: str = ""  # a file of certificates to trust in the place of the usual ones

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """As the operator chose. Raises BadSetting."""
        try:
            hosts, networks = _named(settings.egress_allow)
            ports = frozenset(int(port) for port in settings.egress_ports.split())
        except ValueError as error:
            raise BadSetting(f"INSPECTOR_EGRESS_ALLOW or INSPECTOR_EGRESS_PORTS: {error}") from error
        return cls(
            hosts=hosts,
            networks=networks,
            ports=ports,
            plain=settings.egress_plain,
            deadline_s=settings.egress_deadline_s,
            authorities=settings.egress_authorities,
        )

    def admit(self, address: str) -> httpx.URL:
        """The address, where its form allows a call. Raises Refused."""
        if len(address) > LONGEST:
            raise Refused(f"an address of {len(address)} characters: at most {LONGEST}")
        try:
            url = httpx.URL(address)
        except httpx.InvalidURL as error:
            raise Refused(f"{showable(address, limit=200)!r} is no address: {error}") from error
        if url.scheme not in ("https", *(["http"] if self.plain else [])):
            raise Refused(f"{showable(address, limit=200)!r} does not begin with https://")
        if not url.host or url.userinfo or url.fragment:
            raise Refused(f"{showable(address, limit=200)!r} must name a host, and neither a user nor a fragment")
        if _port(url) not in self.ports:
            raise Refused(f"port {_port(url)} is none of {', '.join(map(str, sorted(self.ports)))}")
        return url

    def judge(self, address: Address) -> None:
        """Raises Refused for an address that is not public, unless its network is allowed."""
        if any(address in network for network in self.networks):
            return
        for meant in (address, *_within(address)):
            if not _is_public(meant):
                raise Refused(f"{address} is not public")

    def post(self, address: str, content: bytes, headers: Mapping[str, str]) -> Answer:
        """One call, looking the name up included, in at most `deadline_s`. Raises Refused and NoAnswer."""
        url, began = self.admit(address), time.monotonic()
        with asyncio.Runner(loop_factory=BackgroundLoop) as runner:  # its lookups end with it, however long the resolver takes
            try:
                status, answered, body, cut = runner.run(asyncio.wait_for(self._post(url, content, headers), self.deadline_s))
            except TimeoutError as error:
                raise NoAnswer(f"no whole answer within {self.deadline_s:g} s") from error
        return Answer(status, answered, body, cut, time.monotonic() - began)

    async def _post(self, url: httpx.URL, content: bytes, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], bytes, bool]:
        failed = NoAnswer("it has no address")
        for address in (await self._resolved(url))[:TRIED]:
            try:
                return await self._call(url, address, content, headers)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failed = NoAnswer(_words(error))
            except (httpx.HTTPError, httpx.StreamError, ssl.SSLError, OSError) as error:
                raise NoAnswer(_words(error)) from error
        raise failed

    async def _resolved(self, url: httpx.URL) -> list[Address]:
        """The addresses of a name that may be called."""
        try:
            found = await asyncio.get_running_loop().getaddrinfo(url.raw_host.decode("ascii"), _port(url), type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise NoAnswer(f"{showable(url.host, limit=200)} has no address: {showable(str(error), limit=200)}") from error
        addresses = list(dict.fromkeys(ip_address(str(place[0])) for *_, place in found))
        return addresses if url.host.lower() in self.hosts else list(self._allowed(addresses))

    def _allowed(self, addresses: Iterable[Address]) -> Iterator[Address]:
        refused: Refused | None = None
        some = False
        for address in addresses:
            try:
                self.judge(address)
            except Refused as error:
                refused = error
            else:
                some = True
                yield address
        if refused is not None and not some:
            raise refused

    async def _call(self, url: httpx.URL, address: Address, content: bytes, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], bytes, bool]:
        sent = {**headers, "Host": url.netloc.decode("ascii"), "Accept-Encoding": "identity"}
        trusted = _trusted(self.authorities)  # also for http: to make a context is what costs most
        pinned = {"sni_hostname": url.raw_host.decode("ascii")}  # the certificate is the name's, wherever it lives
        async with (
            httpx.AsyncClient(verify=trusted, follow_redirects=False, trust_env=False, timeout=httpx.Timeout(self.deadline_s, connect=CONNECT_S)) as client,
            client.stream("POST", url.copy_with(host=str(address)), content=content, headers=sent, extensions=pinned) as response,
        ):
            body = bytearray()
            async for piece in response.aiter_raw():
                body += piece
                if len(body) > self.answer_bytes:
                    return response.status_code, response.headers, bytes(body[: self.answer_bytes]), True
            return response.status_code, response.headers, bytes(body), False


def _named(allow: str) -> tuple[frozenset[str], tuple[IPv4Network | IPv6Network, ...]]:
    """Hosts and networks of a text with spaces between. Raises ValueError."""
    hosts, networks = set[str](), list[IPv4Network | IPv6Network]()
    for word in allow.split():
        try:
            networks.append(ip_network(word))
        except ValueError:
            if "/" in word:
                raise
            hosts.add(word.lower())
    return frozenset(hosts), tuple(networks)


def _port(url: httpx.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address) and (address.is_site_local or address.scope_id is not None):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def _within(address: Address) -> Iterator[IPv4Address]:
    """The IPv4 addresses that an IPv6 one stands for."""
    if isinstance(address, IPv4Address):
        return
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if address in _COMPATIBLE or any(address in network for network in _NAT64):
        yield IPv4Address(int(address) & 0xFFFFFFFF)


@lru_cache(maxsize=4)
def _trusted(authorities: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=authorities) if authorities else httpx.create_ssl_context(trust_env=False)


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {showable(str(error), limit=200)}"
