"""How much memory the processes of the whole service take at most, under a flood with attacks in between."""

from __future__ import annotations

import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import httpx
import psycopg
import pytest
import zstandard

from inspector.embedded import Stack
from inspector.embedded import redis as embedded_redis
from inspector.embedded.processes import session_of
from inspector.settings import Limits, Settings
from inspector.testing import envelope
from tests.attacks.test_bad_input import document, line_of, with_document
from tests.faults.ledger import until

BODIES, LINES = 40, 500
MOST_KB = 600_000
SPINE = ("postgres", "redis", "migrations", "keys", "worker", "beat", "api")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(embedded_redis.binary() is None, reason="no Redis here")]


def episode(number: int) -> bytes:
    """20 steps, 20 kB."""
    steps = [{"step_id": at + 1, "source": "agent" if at % 2 else "user", "message": f"{number} {at} " + "words of an episode " * 50} for at in range(20)]
    trajectory = {"schema_version": "ATIF-v1.8", "agent": {"name": "a", "version": "1"}, "steps": steps}
    return json.dumps(envelope(id=f"e{number}", group=None, trajectory=trajectory)).encode()


def body_of(number: int) -> bytes:
    return zstandard.compress(b"".join(episode(number * LINES + at) + b"\n" for at in range(LINES)))


def attacks() -> list[bytes]:
    """Bodies that cost the most that we know of."""
    step = b'{"step_id": %d, "source": "user", "message": "x"}'
    tidy = [step % (at + 1) for at in range(100_000)]
    text = json.dumps({"step_id": 1, "source": "user", "message": "x" * 60_000_000}).encode()
    lines = [
        with_document("tiny objects", document(step % 1, more=b', "extra": {"a": [' + b"{}," * 15_000_000 + b"{}]}")),
        with_document("just so many", document(step % 1, more=b', "extra": {"a": [' + b"{}," * 2_700_000 + b"{}]}")),
        with_document("empty steps", document(*[b"{}"] * 2_500_000)),
        with_document("many steps", document(*tidy)),
        with_document("one long text", document(text)),
        line_of("in the envelope", extra={"a": [[]] * 5_000_000}),
    ]
    bombs = [zstandard.compress(bytes(512 << 20)), zstandard.compress(b"{}\n" * (60 << 20))]
    return [zstandard.compress(line + b"\n") for line in lines] + bombs


class Peaks:
    """Looks at every process of ours all the time: one that is replaced takes its own peak with it."""

    def __init__(self, stack: Stack) -> None:
        self._leaders = {name: process.pid for name in ("api", "worker", "beat") if (process := stack.children[name].process)}
        self.kb: dict[str, int] = {}  # VmHWM by name and process id
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(0.05):
            for name, leader in self._leaders.items():
                for pid in session_of(leader):
                    with suppress(FileNotFoundError, ProcessLookupError):  # ended meanwhile
                        if found := re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text()):
                            self.kb[f"{name} {pid}"] = int(found[1])


def test_no_process_takes_more_than_600_mb(tmp_path: Path) -> None:
    settings = Settings(limits=Limits(requests_per_minute=10_000_000), log_level="warning")
    with Stack(tmp_path / "data", parts=SPINE, settings=settings) as stack, Peaks(stack) as peaks:
        headers = {"Authorization": f"Bearer {stack.keys['trainer']}", "Content-Type": "application/x-ndjson", "Content-Encoding": "zstd"}
        with httpx.Client(base_url=stack.api_url, headers=headers, timeout=300) as client, ThreadPoolExecutor(2) as threads:

            def post(body: bytes) -> list[dict[str, Any]]:
                answer = client.post("/v1/trajectories", content=body)
                while answer.status_code in (429, 503):
                    answer = client.post("/v1/trajectories", content=body)
                return [json.loads(line) for line in answer.content.splitlines()] if answer.status_code == 200 else []

            created = sum(receipt["status"] == "created" for got in threads.map(lambda at: post(body_of(at)), range(BODIES)) for receipt in got)
            assert created == BODIES * LINES
            print("after the flood", dict(peaks.kb))
            hostile = sum(receipt["status"] == "created" for got in threads.map(post, attacks()) for receipt in got)
            assert hostile == 5
        with psycopg.connect(stack.database_url, autocommit=True) as connection:
            until(lambda: connection.execute("SELECT count(*) FROM work").fetchone() == (0,), 900, "every verdict")
            assert connection.execute("SELECT count(*) FROM verdict").fetchone() == (created + hostile,)
    print("at the end", peaks.kb)
    assert max(peaks.kb.values()) <= MOST_KB, peaks.kb
