"""A small service on loopback: the routes that the client uses, in memory, with faults to switch on."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import zstandard

KEEP = {"action": "keep", "final": True}


class Service:
    """What the real one would keep in Postgres, and its faults.

    faults: `hang` (accept and say nothing), `drip` (a byte of the header at a time), `body_drip`, `reset`, `html`, or a status.
    """

    def __init__(self) -> None:
        self.lock = threading.Condition()
        self.fault: str | int | None = None
        self.fault_path = ""  # only this path
        self.retry_after: str | None = None
        self.refuse: Callable[[list[bytes]], int | None] = lambda lines: None  # a status for a whole body
        self.rule: Callable[[dict[str, Any]], dict[str, Any] | None] = lambda envelope: KEEP
        self.lines: dict[str, bytes] = {}
        self.order: list[str] = []
        self.bodies: list[int] = []  # lines of each body that was read
        self.requests: list[tuple[float, str, str]] = []
        self.duplicates = 0
        self.epoch, self.feed = "e1", list[dict[str, Any]]()
        self.horizon = 0
        self.standing: Callable[[], list[dict[str, Any]]] = list  # what a snapshot says of single trajectories
        self.keeps: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = lambda entries: entries  # what somebody in between lets through of a page
        self.run_modes: dict[str, str] = {}
        self.steps: list[tuple[str, int, dict[str, Any]]] = []
        self.stopped = threading.Event()

    def log(self, **decision: Any) -> int:
        """Add an entry to the feed."""
        with self.lock:
            seq = len(self.feed) + 1 + self.horizon
            self.feed.append({"seq": seq, "scope": "trajectory", "action": "exclude", "mode": "enforce", **decision})
            self.lock.notify_all()
            return seq

    @property
    def head(self) -> int:
        return len(self.feed) + self.horizon

    def take(self, number: int, line: bytes) -> dict[str, Any]:
        try:
            envelope = json.loads(line)
            name = envelope["id"]
        except (ValueError, KeyError, TypeError) as error:
            return {"line": number, "status": "rejected", "reason": f"{type(error).__name__}", "path": "$"}
        if "reject_me" in envelope:
            return {"line": number, "id": name, "status": "rejected", "reason": "asked for it", "path": "$.reject_me"}
        mode = self.run_modes.get((envelope.get("run") or {}).get("id", ""), "observe")
        known = self.lines.get(name)
        if known is not None and hashlib.sha256(known).digest() != hashlib.sha256(line).digest():
            return {"line": number, "id": name, "status": "conflict", "mode": mode}
        status = "created" if known is None else "duplicate"
        self.duplicates += known is not None
        if known is None:
            self.lines[name] = line
            self.order.append(name)
        receipt = {"line": number, "id": name, "key": hashlib.md5(name.encode()).hexdigest(), "status": status, "mode": mode}
        ruling = self.rule(envelope)
        return receipt | ({"decision": {"mode": mode, "enforced": True, **ruling}} if ruling else {})

    def states(self) -> list[dict[str, Any]]:
        latest = {(d["environment"], d["version"], d.get("task")): d for d in self.feed if d["action"] == "set_state"}
        return list(latest.values())


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    service: Service

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PUT = do_DELETE = do_GET

    def _serve(self) -> None:
        url = urlsplit(self.path)
        self.query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.service.requests.append((time.monotonic(), self.command, url.path))
        if self.service.fault is not None and self.service.fault_path in ("", url.path) and self._fault(self.service.fault):
            return
        self._route(unquote(url.path), body)

    def _fault(self, fault: str | int) -> bool:
        service = self.service
        if isinstance(fault, int):
            self._answer(fault, {"error": {"reason": "a fault was switched on", "status": fault}})
        elif fault == "hang":
            service.stopped.wait(60)
            self.close_connection = True
        elif fault in ("drip", "body_drip"):
            text = b"HTTP/1.1 200 OK\r\nX-Drip: " if fault == "drip" else b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"
            self._drip(text)
        elif fault == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
        elif fault == "html":
            self._raw(200, b"<html>a proxy's page</html>", "text/html")
        else:
            return False
        return True

    def _drip(self, text: bytes) -> None:
        self.close_connection = True
        for byte in itertools.chain(text, itertools.repeat(ord("x"))):
            if self.service.stopped.wait(0.01):
                return
            try:
                self.connection.sendall(bytes([byte]))
            except OSError:
                return

    def _route(self, path: str, body: bytes) -> None:
        if path == "/v1/trajectories" and self.command == "POST":
            self._post(body)
        elif path == "/v1/decisions":
            self._decisions()
        elif path == "/v1/decisions/snapshot":
            service = self.service
            self._answer(200, {"epoch": service.epoch, "seq": service.head, "states": service.states(), "decisions": service.standing(), "next": None})
        elif path == "/v1/decisions/lookup":
            self._look_up(json.loads(body)["ids"])
        elif path.startswith("/v1/runs/") and self.command == "POST":
            run, _, step = path.removeprefix("/v1/runs/").rpartition("/steps/")
            self.service.steps.append((run, int(step), json.loads(body)))
            self._answer(201, {"run": run, "step": int(step), "status": "created"})
        elif path.startswith("/v1/runs/") and self.command == "GET":
            run = path.rpartition("/")[2]
            known = run in self.service.run_modes
            self._answer(200 if known else 404, {"id": run, "mode": self.service.run_modes[run]} if known else {"error": {"reason": "no run"}})
        elif path == "/v1/trajectories":
            self._list()
        elif path == "/readyz":
            self._answer(200, {})
        else:
            self._answer(404, {"error": {"reason": f"no route {path}", "status": 404, "path": "$.url"}})

    def _post(self, body: bytes) -> None:
        service = self.service
        encoding = self.headers.get("Content-Encoding", "identity")
        if encoding == "zstd":
            body = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True).decompress(body)
        elif encoding == "gzip":
            body = gzip.decompress(body)
        lines = [line for line in body.split(b"\n") if line]
        service.bodies.append(len(lines))
        if status := service.refuse(lines):
            self._answer(status, {"error": {"reason": "a bad body", "status": status, "path": "$.x"}})
            return
        with service.lock:
            receipts = [service.take(number, line) for number, line in enumerate(lines)]
        self._raw(200, b"".join(json.dumps(receipt).encode() + b"\n" for receipt in receipts), "application/x-ndjson")

    def _decisions(self) -> None:
        service, after = self.service, int(self.query.get("after", 0))
        if self.query.get("epoch") not in (None, "", service.epoch) or after < service.horizon:
            self._answer(410, {"error": {"reason": "gone", "status": 410}, "snapshot": "/v1/decisions/snapshot"})
            return
        with service.lock:
            service.lock.wait_for(lambda: service.head > after or service.stopped.is_set(), float(self.query.get("wait", 0)))
        limit = int(self.query.get("limit", 100))
        entries = service.feed[after - service.horizon :][:limit]
        if not entries and self.headers.get("If-None-Match"):
            self._raw(304, b"", "application/json")
            return
        more = after + len(entries) < service.head
        self._answer(200, {"epoch": service.epoch, "seq": service.head, "decisions": service.keeps(entries), "more": more})

    def _look_up(self, ids: list[str]) -> None:
        service = self.service
        found = {name: service.rule(json.loads(service.lines[name])) for name in ids if name in service.lines}
        self._answer(200, {"epoch": service.epoch, "seq": service.head, "decisions": found, "unknown": [name for name in ids if name not in found]})

    def _list(self) -> None:
        names = self.service.order[int(self.query.get("after", 0)) :][: int(self.query.get("limit", 2))]
        after = int(self.query.get("after", 0)) + len(names)
        self._answer(
            200, {"trajectories": [{"id": name} for name in names], "next": str(after) if after < len(self.service.order) else None, "scanned": len(names)}
        )

    def _answer(self, status: int, answer: dict[str, Any]) -> None:
        self._raw(status, json.dumps(answer).encode(), "application/json")

    def _raw(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Inspector-Epoch", self.service.epoch)
        self.send_header("Inspector-Seq", str(self.service.head))
        if status >= 400 and self.service.retry_after:
            self.send_header("Retry-After", self.service.retry_after)
        self.end_headers()
        self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: Any) -> None:
        """A client that went away is what many of these tests are about."""


@contextmanager
def serving(service: Service, port: int = 0) -> Iterator[str]:
    """Serve until the end of the block; gives the address."""
    server = _Server(("127.0.0.1", port), type("Bound", (Handler,), {"service": service}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        service.stopped.set()
        with service.lock:
            service.lock.notify_all()
        server.shutdown()
        server.server_close()
        thread.join(5)
