"""An event loop for a background thread, where nothing that hangs can hold up the process's exit."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")


class BackgroundLoop(asyncio.SelectorEventLoop):
    """Looks names up on daemon threads: a resolver that hangs outlives the deadline of its caller, but not the process."""

    async def getaddrinfo(self, host: Any, port: Any, *, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0) -> Any:
        return await on_daemon_thread(lambda: socket.getaddrinfo(host, port, family, type, proto, flags))


async def on_daemon_thread(function: Callable[[], Result]) -> Result:
    """Run a blocking call that may raise OSError or ValueError on a thread of its own."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def finish(setter: Callable[[Any], None], value: Any) -> None:
        if not future.done():
            setter(value)

    def run() -> None:
        try:
            arguments: tuple[Callable[[Any], None], Any] = (future.set_result, function())
        except (OSError, ValueError) as error:
            arguments = (future.set_exception, error)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(finish, *arguments)

    threading.Thread(target=run, name="inspector-blocking", daemon=True).start()
    return await future
