"""A server on a socket of loopback, so that what an attacker sends arrives as it was sent."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from inspector.api import create_app
from inspector.settings import Limits, Settings
from inspector.store.session import connect
from tests.api.conftest import House, drain, make_keys
from tests.embedded.waiting import until

MANY = 10_000_000  # requests a minute: here it is not the rate that is tried


@contextmanager
def serving(database: str, root: Path, **settings: Any) -> Iterator[House]:
    """The API as uvicorn serves it, and an audit at the call of a test."""
    settings.setdefault("limits", Limits(requests_per_minute=MANY))
    chosen = Settings(database_url=database, store_url=f"file://{root}", log_level="warning", **settings)
    engine = connect(database, pool_size=2)
    keys = make_keys(engine)
    app = create_app(chosen)
    with listening(app) as address, httpx.Client(base_url=address, timeout=120) as client:
        yield House(app, client, engine, chosen, keys, lambda: drain(engine, chosen))  # type: ignore[arg-type]  # a real client answers alike
    engine.dispose()


@contextmanager
def listening(app: Any) -> Iterator[str]:
    """The address at which `app` is served in a thread, with the parser and the loop of the product."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(app, loop="uvloop", http="httptools", log_level="warning", access_log=False, timeout_graceful_shutdown=2)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            until(lambda: server.started or not thread.is_alive())
            assert server.started
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def house(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """One server for the tests of a module: each uses ids of its own."""
    with serving(module_database, tmp_path_factory.mktemp("store")) as served:
        yield served


@pytest.fixture
def shout(house: House) -> Callable[..., bytes]:
    """Send raw bytes, and hear what comes back until the server closes or says nothing for a while."""

    def send(raw: bytes, quiet_s: float = 5.0) -> bytes:
        heard = b""
        with socket.create_connection((house.client.base_url.host, house.client.base_url.port), timeout=quiet_s) as line:
            line.sendall(raw)
            try:
                while piece := line.recv(65536):
                    heard += piece
            except (TimeoutError, ConnectionResetError):
                pass
        return heard

    return send
