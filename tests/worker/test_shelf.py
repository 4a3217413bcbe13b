"""Packages that name what is opened: a verifier that is served, and libraries that a worker may lack."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from pathlib import Path
from typing import IO, cast
from uuid import uuid4

import pytest

from inspector.assignments import Assignment, PackageOfWork, handed_over
from inspector.egress import Egress
from inspector.environments.protocol import Environment, Text, Trouble, Unreadable
from inspector.probe.words import Outcome
from inspector.sandbox.opening import open_backend
from inspector.sandbox.protocol import Backend
from inspector.worker.prober import probed
from inspector.worker.shelf import Shelf, command

LOOPBACK = (ip_network("127.0.0.0/8"),)
ROWS = b'{"id": "a", "prompt": "6 * 7?", "answer": "42"}\n'
NO_BOXES = cast(Backend, None)  # what is served is graded elsewhere


class Judge(BaseHTTPRequestHandler):
    """Pays `42`."""

    def do_POST(self) -> None:
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["response"]["output"][0]["content"][0]["text"]
        body = json.dumps({"reward": float(said == "42")}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def judge() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Judge)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as opened:
        about = tarfile.TarInfo("rows.jsonl")
        about.size = len(ROWS)
        opened.addfile(about, io.BytesIO(ROWS))
    return out.getvalue()


def assignment(face: str, entry: str, data: bytes | None, dataset: str | None = None) -> Assignment:
    package = PackageOfWork(sha256=None if data is None else hashlib.sha256(data).hexdigest(), face=face, entry=entry, dataset=dataset)
    return Assignment(work=1, lease=1, lease_s=1.0, probe=uuid4(), environment="acme/x", version="1", depth="quick", task="a", package=package)


def opened(room: Path, asked: Assignment, egress: Egress, backend: Backend = NO_BOXES) -> Environment:
    def fetch(_: Assignment, into: IO[bytes]) -> None:
        into.write(tar())

    return Shelf(room, backend, fetch, egress).environment(asked)


def served(port: int) -> Assignment:
    return assignment("http_verifier", f"http://127.0.0.1:{port}/verify", tar(), "rows.jsonl")


def test_a_served_verifier_is_called_where_the_operator_allows_it(tmp_path: Path, judge: int) -> None:
    found = opened(tmp_path, served(judge), Egress(networks=LOOPBACK, ports=frozenset({judge}), plain=True))
    [task] = found.tasks()
    assert [found.grade(task, Text(text)).reward for text in ("42", "41")] == [1.0, 0.0]


def test_a_served_verifier_in_the_services_own_network_is_not_called_and_not_assessed(tmp_path: Path, judge: int) -> None:
    found = opened(tmp_path, served(judge), Egress(ports=frozenset({judge}), plain=True))
    [task] = found.tasks()
    grade = found.grade(task, Text("42"))
    assert (grade.reward, grade.trouble, grade.evidence) == (None, Trouble.REFUSED, "this verifier is not called: 127.0.0.1 is not public")
    report = probed(found, task.id, served(judge))
    assert report.outcomes == (Outcome.NOT_ASSESSED,)
    assert "is not public" in str(report)


@pytest.mark.parametrize("egress", [Egress(), Egress(plain=True)], ids=["http", "a port"])
def test_an_address_of_a_form_that_is_not_allowed_cannot_be_opened(tmp_path: Path, judge: int, egress: Egress) -> None:
    with pytest.raises(Unreadable, match="this verifier is not called"):
        opened(tmp_path, served(judge), egress)


@pytest.mark.parametrize(("face", "entry"), [("reasoning_gym", "chain_sum"), ("verifiers", "nothing_that_is_installed")])
def test_a_worker_that_lacks_the_library_says_so(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, face: str, entry: str) -> None:
    backend = open_backend(tmp_path_factory.mktemp("boxes"))
    if missing := backend.capabilities.missing:
        pytest.skip(f"this machine gives no box: {missing}")
    with pytest.raises(Unreadable, match=r"reasoning.gym|verifiers"):
        opened(tmp_path, assignment(face, entry, None), Egress(), backend).tasks()


def test_what_is_named_is_named_on_a_command_line_too() -> None:
    assert handed_over("rows", None) == "PATH"
    assert command(assignment("reasoning_gym", "chain_sum", None).package) == "inspector probe reasoning-gym:chain_sum"
    assert command(served(8000).package) == "inspector probe http://127.0.0.1:8000/verify --dataset rows.jsonl"
