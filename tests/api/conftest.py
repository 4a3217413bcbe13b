"""A running API on a fresh database, with two projects and a key for every role."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import Engine

from inspector import catalog, policy
from inspector.api import create_app
from inspector.audit import Auditor, Pace
from inspector.settings import Settings
from inspector.store import decisions, projects
from inspector.store.projects import Role
from inspector.store.segments import SegmentReader
from inspector.store.session import connect, driver, transaction
from inspector.testing import envelope

Lines = list[dict[str, Any]]


class House(NamedTuple):
    """What a test works with."""

    app: FastAPI
    client: TestClient
    engine: Engine
    settings: Settings
    keys: dict[str, str]  # PROJECT-ROLE -> key; `admin` and `prober` for the installation's
    audit: Callable[[], int]

    def auth(self, holder: str = "acme-owner") -> dict[str, str]:
        return {"Authorization": f"Bearer {self.keys[holder]}"}

    def get(self, path: str, holder: str = "acme-owner", **parameters: Any) -> Any:
        return self.client.get(path, headers=self.auth(holder), params=parameters)

    def call(self, method: str, path: str, body: Any = None, holder: str = "acme-owner", **parameters: Any) -> Any:
        content = None if body is None else msgspec.json.encode(body)
        return self.client.request(method, path, content=content, headers={**self.auth(holder), "Content-Type": "application/json"}, params=parameters)

    def post(self, *envelopes: dict[str, Any], holder: str = "acme-trainer", **parameters: Any) -> Lines:
        """Several as NDJSON; the receipts."""
        body = b"".join(msgspec.json.encode(e) + b"\n" for e in envelopes)
        headers = {**self.auth(holder), "Content-Type": "application/x-ndjson"}
        answer = self.client.post("/v1/trajectories", content=body, headers=headers, params=parameters)
        assert answer.status_code == 200, answer.text
        return [msgspec.json.decode(line) for line in answer.content.splitlines()]

    def post_one(self, one: dict[str, Any] | bytes, holder: str = "acme-trainer", headers: dict[str, str] | None = None, **parameters: Any) -> Any:
        content = one if isinstance(one, bytes) else msgspec.json.encode(one)
        return self.client.post(
            "/v1/trajectories", content=content, headers={**self.auth(holder), "Content-Type": "application/json", **(headers or {})}, params=parameters
        )


def paid_despite_failures(id_: str, **overrides: Any) -> dict[str, Any]:
    """A trajectory that a check of tier evidence quarantines: the verifier timed out and paid."""
    return envelope(id=id_, reward=1.0, verifier={"exit_code": 124, "timed_out": True, "stdout": "killed"}, **overrides)


@pytest.fixture
def open_house(database: str, tmp_path: Path) -> Iterator[Callable[..., House]]:
    """Opens the house with settings of the test's own."""
    opened: list[Any] = []

    def enter(**settings: Any) -> House:
        chosen = Settings(**{"database_url": database, "store_url": f"file://{tmp_path}", "webhook_key": "the operator's"} | settings)
        engine = connect(database, pool_size=2)
        keys = make_keys(engine)
        app = create_app(chosen)
        client = TestClient(app, raise_server_exceptions=False)
        client.__enter__()
        opened.append((client, engine))
        return House(app, client, engine, chosen, keys, lambda: drain(engine, chosen))

    yield enter
    for client, engine in opened:
        client.__exit__(None, None, None)
        engine.dispose()


@pytest.fixture
def house(open_house: Callable[..., House]) -> House:
    """The usual one."""
    return open_house()


def make_keys(engine: Engine) -> dict[str, str]:
    keys = {}
    with transaction(engine) as session:
        keys["admin"] = projects.add_key(session, None, "root", Role.ADMIN).secret
        keys["prober"] = projects.add_key(session, None, "sandbox", Role.PROBER).secret
        for name in ("acme", "other"):
            projects.create(session, name)
            project, _ = projects.by_name(session, name)
            for role in (Role.TRAINER, Role.REVIEWER, Role.OWNER):
                keys[f"{name}-{role}"] = projects.add_key(session, project, f"{role} of {name}", role).secret
    return keys


def drain(engine: Engine, settings: Settings) -> int:
    """Audit all that waits, as a worker does."""

    def wake(woken: set[int]) -> None:
        with transaction(engine) as session:
            driver(session).execute("SELECT pg_notify(%s, %s)", (decisions.CHANNEL, ",".join(map(str, woken))))

    reader = SegmentReader(settings.store_path)
    auditor = Auditor(engine, reader, catalog.load(), policy.load(), Pace(), wake=wake, watch=lambda _: None, alarms=False)
    return auditor.drain()
