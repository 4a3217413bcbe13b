"""Passes connections on to the service, and can be shut, as a network that goes away."""

from __future__ import annotations

import asyncio
import contextlib
import threading


class Relay:
    """Listens on a port of its own on loopback, on a thread of its own."""

    def __init__(self, port: int) -> None:
        self._target, self.port = port, 0
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        threading.Thread(target=self._loop.run_forever, name="relay", daemon=True).start()
        self.open()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def open(self) -> None:
        """Accept connections, on the same port as before."""
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(10)

    def shut(self) -> None:
        """Accept none, and drop those that are there."""
        asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result(10)

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._pass, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _shut(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers |= {writer, back}
        with contextlib.suppress(ConnectionError):
            await asyncio.gather(_pump(reader, back), _pump(there, writer))
        self._writers -= {writer, back}


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(1 << 16):
            writer.write(piece)
            await writer.drain()
    finally:
        writer.close()
