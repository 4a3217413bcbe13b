"""What the tests of the dashboard work with: a served API, long and hostile trajectories."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgspec
from sqlalchemy import Engine

from dashboard import session
from inspector.client.http import Api
from inspector.settings import Settings
from tests.api.conftest import paid_despite_failures

SCRIPT = Path(session.__file__).parent / "streamlit_app.py"
EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script> [x](javascript:alert(3)) **b** :red[r] \x1b[31m \u202egnp.exe \u200b"
WITHIN_MS = 60_000  # for a machine that does other things too
BROWSER = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]


@contextmanager
def watched(browser: Any, base_url: str, *scripts: str) -> Iterator[Any]:
    """A page of a browser that knows nobody; a dialog, an error of a script or a call to elsewhere fails the test."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, base_url=base_url)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    context.set_default_timeout(WITHIN_MS)
    for script in scripts:
        context.add_init_script(script)
    opened, wrong = context.new_page(), []
    opened.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    opened.on("pageerror", lambda error: wrong.append(f"script: {error}"))
    opened.on("request", lambda request: None if request.url.startswith((base_url, "data:", "blob:")) else wrong.append(f"elsewhere: {request.url}"))
    yield opened
    context.close()
    assert wrong == []


class Served(NamedTuple):
    """The API over HTTP, and what the tests do behind its back."""

    url: str
    engine: Engine
    settings: Settings
    keys: dict[str, str]
    audit: Callable[[], int]

    def api(self, holder: str = "acme-owner") -> Api:
        return Api(self.url, self.keys[holder])

    def post(self, *envelopes: dict[str, Any]) -> dict[str, str]:
        """Post and audit; producer id -> key."""
        with self.api("acme-trainer") as api:
            receipts = api.post_lines([msgspec.json.encode(e) for e in envelopes])
        self.audit()
        return {str(receipt.id): str(receipt.key) for receipt in receipts}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(url: str, within_s: float = 30.0) -> None:
    """Wait until a server answers."""
    end = time.monotonic() + within_s
    while True:
        try:
            httpx.get(url, timeout=2.0, trust_env=False)
            return
        except httpx.HTTPError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def long_steps(count: int = 2_000, length: int = 2_000) -> list[dict[str, Any]]:
    """Steps of about `length` characters each, without randomness."""
    words = ["the", "service", "was", "restarted", "and", "its", "log", "shows", "nothing", "that", "explains", "the", "failure", "of", "port"]
    steps: list[dict[str, Any]] = [{"step_id": 1, "source": "user", "message": "Fix nginx so that the health check passes."}]
    for at in range(1, count):
        text = " ".join(words[(at * 7 + n * 3) % len(words)] for n in range(length // 6))
        if at == 1_500:
            text = text[:900] + " zanzibar " + text[900:]
        call = {"tool_call_id": f"c{at}", "function_name": "bash", "arguments": {"command": f"systemctl status unit-{at}"}}
        steps.append(
            {
                "step_id": at + 1,
                "source": "agent",
                "message": f"step number {at}",
                "tool_calls": [call],
                "observation": {"results": [{"source_call_id": f"c{at}", "content": text}]},
            }
        )
    return steps


def with_steps(steps: list[dict[str, Any]], **overrides: Any) -> dict[str, Any]:
    return paid_despite_failures("x", trajectory={"schema_version": "ATIF-v1.6", "agent": {"name": "a", "version": "1"}, "steps": steps}) | overrides
