"""The product and each peer as a running stack of processes on servers of its own, all taken in by the same few words."""

from __future__ import annotations

import gzip
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psycopg

from benchmarks import cpu, posting
from benchmarks.checks import anomalies
from benchmarks.posting import Request
from benchmarks.workload import Posted
from inspector import frames
from inspector.embedded import Ports, Stack
from inspector.embedded.child import Program
from inspector.settings import Limits, Settings

HERE = Path(__file__).parent
SETTLED_S, STARTED_S = 600.0, 60.0
POLL_S = 0.1
Findings = dict[str, set[tuple[str, str]]]  # id -> (check, what it named)
SETTINGS = Settings(limits=Limits(requests_per_minute=1_000_000_000))  # singles from one project come faster here than any trainer sends them
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # two workers on two cores: more threads only disturb each other


class Running:
    """A stack that takes trajectories in and judges them."""

    path = "/trajectories"

    def __init__(self, name: str, stack: Stack, url: str) -> None:
        self.name, self.stack, self.url = name, stack, url

    def cpu(self) -> dict[str, float]:
        """Seconds used so far, by part."""
        return cpu.used({name: child.process.pid for name, child in self.stack.children.items() if child.process})

    def post(self, posted: Sequence[Posted], *, batch: int, form: str, clients: int = 2) -> None:
        """Send all, `batch` in a request; forms are `single`, `array`, `lines`, `gzip` and `frames`."""
        self.send(self.requests(posted, batch, form), clients)

    def requests(self, posted: Sequence[Posted], batch: int, form: str) -> list[Request]:
        return [self.request([one.line for one in posted[at : at + batch]], form) for at in range(0, len(posted), batch)]

    def send(self, requests: Sequence[Request], clients: int) -> None:
        posting.send(self.url, self.path, requests, clients=clients)

    def request(self, lines: Sequence[bytes], form: str) -> Request:
        return Request(*_FORMS[form](lines))

    def sql(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.stack.database_url, autocommit=True) as connection:
            done = connection.execute(query, values)
            return done.fetchall() if done.description else []

    def settle(self, posted: Sequence[Posted]) -> None:
        """Wait until all of these are judged."""

    def findings(self, posted: Sequence[Posted]) -> Findings:
        """What was found in them."""
        raise NotImplementedError


def _waited(done: Callable[[], bool], what: str, patience_s: float = SETTLED_S) -> None:
    ends = time.monotonic() + patience_s
    while not done():
        if time.monotonic() > ends:
            raise TimeoutError(f"not within {patience_s:.0f} s: {what}")
        time.sleep(POLL_S)


_NDJSON = {"Content-Type": "application/x-ndjson"}
_FORMS = {
    "single": lambda lines: (lines[0], {"Content-Type": "application/json"}),
    "array": lambda lines: (b"[" + b",".join(lines) + b"]", {"Content-Type": "application/json"}),
    "lines": lambda lines: (b"\n".join(lines) + b"\n", _NDJSON),
    "gzip": lambda lines: (gzip.compress(b"\n".join(lines) + b"\n", 6), {**_NDJSON, "Content-Encoding": "gzip"}),
    "frames": lambda lines: (b"".join(frames.pack(lines)), {**_NDJSON, "Content-Encoding": "zstd"}),
}

# --- the product -----------------------------------------------------------------------------------------------------


class Product(Running):
    path = "/v1/trajectories"

    def __init__(self, stack: Stack, *, audits: bool) -> None:
        super().__init__("product", stack, stack.api_url)
        self._audits = audits

    def request(self, lines: Sequence[bytes], form: str) -> Request:
        body, headers = _FORMS[form](lines)
        return Request(body, {**headers, "Authorization": f"Bearer {self.stack.keys['trainer']}"})

    def settle(self, posted: Sequence[Posted]) -> None:
        if not self._audits:
            return
        with psycopg.connect(self.stack.database_url, autocommit=True) as connection:
            _waited(lambda: connection.execute("SELECT NOT EXISTS (SELECT FROM work)").fetchone() == (True,), "no work is left")

    def findings(self, posted: Sequence[Posted]) -> Findings:
        found: Findings = {one.id: set() for one in posted}
        query = "SELECT t.id, f.body FROM finding f JOIN trajectory t USING (key) WHERE t.id = ANY(%s)"
        for id_, body in self.sql(query, list(found)):
            finding = msgspec.json.decode(body)
            owner, _, check = finding["check"].partition("/")
            if owner == "bench":
                found[id_].add((check, finding["message"]))
        return found

    def visits(self) -> int:
        """How often a worker came to a bell."""
        return (self.stack.data / "logs" / "worker.log").read_bytes().count(b"Task inspector.audit[") // 2  # received, succeeded

    def stored_bytes(self) -> int:
        """Segments, tables and indexes, after VACUUM; without the write-ahead log."""
        self.sql("VACUUM")
        [(tables,)] = self.sql("SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace")
        return int(tables) + sum(file.stat().st_size for file in (self.stack.settings.store_path / "segments").rglob("*.seg"))


FOUR = "bench"  # the owner under which our four checks are found


@contextmanager
def product(folder: Path, *, checks: str = FOUR, audits: bool = True) -> Iterator[Product]:
    """The service as it is; the four checks come in by the door that strangers use. An empty `checks` runs its own as well."""
    parts = ["postgres", "redis", "migrations", "keys", "api", *(["worker", "beat"] if audits else [])]
    path = os.pathsep.join([str(HERE / "site"), str(HERE.parent)])
    settings = msgspec.structs.replace(SETTINGS, checks=checks)
    forest = folder.with_suffix(".npz")
    anomalies.write(forest)
    with _environment({**ONE_THREAD, "PYTHONPATH": path, anomalies.WRITTEN: str(forest)}), Stack(folder, parts=parts, settings=settings) as stack:  # type: ignore[arg-type]
        yield Product(stack, audits=audits)


# --- the peers -------------------------------------------------------------------------------------------------------


class Peer(Running):
    def __init__(self, name: str, stack: Stack, url: str, checks: int) -> None:
        super().__init__(name, stack, url)
        self._checks, self._expected = checks, 0

    def settle(self, posted: Sequence[Posted]) -> None:
        self._expected += self._checks * len(posted)
        with psycopg.connect(self.stack.database_url, autocommit=True) as connection:
            _waited(lambda: connection.execute("SELECT count(*) FROM verdict").fetchone() == (self._expected,), "every verdict of a peer")

    def findings(self, posted: Sequence[Posted]) -> Findings:
        found: Findings = {one.id: set() for one in posted}
        query = 'SELECT t.name, v."check", v.details FROM verdict v JOIN trajectory t ON t.id = v.trajectory WHERE v.flagged AND t.name = ANY(%s)'
        for name, check, details in self.sql(query, list(found)):
            found[name] |= {(check, detail) for detail in details or [""]}
        return found


class Plain(Running):
    pass


@contextmanager
def peer(name: str, folder: Path, *, forest: bool = True) -> Iterator[Peer]:
    """`naive` or `good`."""
    with Stack(folder, parts=["postgres", "redis"], settings=SETTINGS) as stack:
        environment = {"BENCH_DATABASE_URL": stack.database_url, "BENCH_REDIS_URL": stack.redis_url, "BENCH_WITHOUT_FOREST": "" if forest else "1"}
        _make_tables(stack.database_url)
        url = _serve(stack, name, environment)
        options = ["--pool", "prefork", "--concurrency", "2", "--without-gossip", "--without-mingle", "--loglevel", "info"]
        stack.add(_python("worker", environment, "celery", "-A", f"benchmarks.peers.{name}:celery", "worker", *options))
        _waited(lambda: b" ready." in (stack.data / "logs" / "worker.log").read_bytes(), "the peer's worker", STARTED_S)
        yield Peer(name, stack, url, 4 if forest else 3)


@contextmanager
def plain(folder: Path) -> Iterator[Plain]:
    with Stack(folder, parts=[], settings=SETTINGS) as stack:
        yield Plain("plain", stack, _serve(stack, "plain", {"BENCH_SQLITE": str(folder / "plain.sqlite")}))


def _serve(stack: Stack, name: str, environment: Mapping[str, str]) -> str:
    port = Ports.free("127.0.0.1").api
    options = ["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--host", "127.0.0.1", "--port", str(port)]
    stack.add(_python("api", environment, "uvicorn", f"benchmarks.peers.{name}:app", *options))
    url = f"http://127.0.0.1:{port}"
    _waited(lambda: _answers(f"{url}/ready"), "the peer's server", STARTED_S)
    return url


def _python(name: str, environment: Mapping[str, str], module: str, *arguments: str) -> Program:
    variables = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(HERE.parent), **environment}
    return Program(name=name, command=[sys.executable, "-P", "-m", module, *arguments], environment=variables)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:  # our own server, on this machine
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _make_tables(database_url: str) -> None:
    from sqlalchemy import create_engine

    from benchmarks.peers.tables import Base

    engine = create_engine(database_url.replace("postgresql://", "postgresql+psycopg://", 1))
    Base.metadata.create_all(engine)
    engine.dispose()


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Processes that are started inside inherit these."""
    before = {name: os.environ.get(name) for name in variables}
    with ExitStack() as undo:
        for name, value in before.items():
            undo.callback(lambda name=name, value=value: os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value))
        os.environ.update(variables)
        yield
