"""A client that costs little: requests over kept connections, many at once. Its CPU counts for nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

ANSWER_S = 300.0


class Request(NamedTuple):
    body: bytes
    headers: Mapping[str, str]


def send(url: str, path: str, requests: Iterable[Request], *, clients: int) -> list[bytes]:
    """All requests, by so many clients at once; the answers in their order. Raises RuntimeError for an answer that is not 2xx."""
    return asyncio.run(_send(url, path, list(requests), clients))


async def _send(url: str, path: str, requests: list[Request], clients: int) -> list[bytes]:
    place = urlsplit(url)
    answers: list[bytes] = [b""] * len(requests)
    waiting = iter(enumerate(requests))

    async def client() -> None:
        reader, writer = await asyncio.open_connection(place.hostname, place.port, limit=1 << 24)
        for number, request in waiting:
            writer.write(_head(path, request) + request.body)
            await writer.drain()
            async with asyncio.timeout(ANSWER_S):
                answers[number] = await _answer(reader)
        writer.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(min(clients, len(requests))):
            group.create_task(client())
    return answers


def _head(path: str, request: Request) -> bytes:
    headers = {"Host": "localhost", "Content-Length": str(len(request.body)), **request.headers}
    return (f"POST {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n").encode()


async def _answer(reader: asyncio.StreamReader) -> bytes:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = next(int(line.partition(":")[2]) for line in head.split("\r\n") if line.startswith("content-length:"))
    body = await reader.readexactly(length)
    status = int(head.split(" ", 2)[1])
    if not 200 <= status < 300:
        raise RuntimeError(f"{status}: {body[:500]!r}")
    return body
