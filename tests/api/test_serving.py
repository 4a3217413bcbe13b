"""The API as uvicorn serves it: a real process, with real connections."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from inspector.embedded import services
from inspector.settings import Settings
from inspector.store.session import connect
from inspector.testing import envelope
from tests.api.conftest import make_keys


@pytest.fixture
def served(database, tmp_path) -> Iterator[tuple[str, dict[str, str], subprocess.Popen[bytes]]]:
    """The address, the keys and the process."""
    engine = connect(database, pool_size=1)
    keys = make_keys(engine)
    engine.dispose()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = Settings(database_url=database, store_url=f"file://{tmp_path}", port=port)
    program = services.api(settings, tmp_path)
    process = subprocess.Popen(program.command, env={**program.environment})
    address = f"http://127.0.0.1:{port}"
    try:
        give_up_at = time.monotonic() + 180
        while not answers(address):
            assert process.poll() is None, "it ended"
            assert time.monotonic() < give_up_at, "it does not answer"
            time.sleep(0.05)
        yield address, keys, process
    finally:
        process.kill()
        process.wait(10)


def answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/readyz", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


def auth(keys: dict[str, str], holder: str = "acme-trainer") -> dict[str, str]:
    return {"Authorization": f"Bearer {keys[holder]}"}


def test_sigterm_wakes_those_who_wait_and_ends_in_good_time(served):
    address, keys, process = served
    with ThreadPoolExecutor(5) as pool:
        polls = [pool.submit(httpx.get, f"{address}/v1/decisions?wait=30", headers=auth(keys), timeout=40) for _ in range(5)]
        give_up_at = time.monotonic() + 20
        while "inspector_waiters 5.0" not in httpx.get(f"{address}/metrics").text:
            assert time.monotonic() < give_up_at, "they do not wait"
            time.sleep(0.05)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert [poll.result().status_code for poll in polls] == [200] * 5
    process.wait(15)
    assert time.monotonic() - began < 10
    assert process.returncode in (0, -signal.SIGTERM)


def test_single_posts_at_once_are_all_stored_and_acknowledged_once(served):
    address, keys, _ = served
    with httpx.Client(base_url=address, headers=auth(keys)) as client, ThreadPoolExecutor(16) as pool:
        answered = list(pool.map(lambda n: client.post("/v1/trajectories", json=envelope(id=f"t{n % 150}"), timeout=60), range(300)))
    assert sorted({a.status_code for a in answered}) == [200, 201]
    assert sum(a.status_code == 201 for a in answered) == 150
    keys_of = {}
    for a in answered:
        keys_of.setdefault(a.json()["id"], set()).add(a.json()["key"])
    assert all(len(found) == 1 for found in keys_of.values())


def test_a_slow_sender_does_not_stop_the_others(served):
    address, keys, _ = served
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as slow:
        head = f"POST /v1/trajectories HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {keys['acme-trainer']}\r\nContent-Type: application/x-ndjson\r\n"
        slow.sendall(f"{head}Content-Length: 1000\r\n\r\n".encode() + b"{")
        assert httpx.post(f"{address}/v1/trajectories", json=envelope(id="a"), headers=auth(keys), timeout=30).status_code == 201
