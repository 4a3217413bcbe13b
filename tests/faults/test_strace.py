"""The order that durability rests on, as the kernel saw it: flush, then commit, then the status line."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from inspector.testing import envelope
from tests.faults import tracing
from tests.faults.ledger import until
from tests.faults.service import RECOVERY_S, Service, serving

CONNECTIONS = 4
PARTS = ("postgres", "redis", "migrations", "keys")


WRITE = '7 1.0 write(14</s/a.seg>, "P*M\\30"..., 600) = 600'
FLUSH = "7 1.1 fdatasync(14</s/a.seg>) = 0"
ROWS = '7 1.2 sendto(11<socket:[5]>, "d\\0\\0\\1PGCOPY\\n\\377strace-0-1\\377\\377c\\0", 300, MSG_NOSIGNAL, NULL, 0) = 300'
COMMIT = '7 1.3 sendto(11<socket:[5]>, "Q\\0\\0\\0\\vCOMMIT\\0", 12, MSG_NOSIGNAL, NULL, 0) = 12'
ASKED = "7 1.4 recvfrom(11<socket:[5]>,  <unfinished ...>"
CONFIRMED = '7 1.5 <... recvfrom resumed>"C\\0\\0\\0\\vCOMMIT\\0Z\\0\\0\\0\\5I", 16384, 0, NULL, NULL) = 18'
ANSWER = (
    '3 1.6 writev(9<socket:[6]>, [{iov_base="HTTP/1.1 201 Created"}, '
    '{iov_base="{\\"line\\":0,\\"status\\":\\"created\\",\\"id\\":\\"strace-0-1\\"}"}], 2) = 300'
)


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ([WRITE, FLUSH, ROWS, COMMIT, ASKED, CONFIRMED, ANSWER], None),
        ([WRITE, ROWS, COMMIT, ASKED, FLUSH, CONFIRMED, ANSWER], "before its flush returned"),
        ([FLUSH, WRITE, ROWS, COMMIT, ASKED, CONFIRMED, ANSWER], "without a flush"),
        ([WRITE, FLUSH.replace("= 0", "= -1 EIO"), ROWS, COMMIT, ASKED, CONFIRMED, ANSWER], "without a flush"),
        ([WRITE, FLUSH, ROWS, COMMIT, ASKED, ANSWER, CONFIRMED], "before its commit was confirmed"),
        ([WRITE, FLUSH, ROWS, COMMIT, ANSWER], "not seen"),
    ],
)
def test_a_trace_in_another_order_is_told(tmp_path: Path, lines: list[str], fault: str | None) -> None:
    trace = tmp_path / "trace"
    trace.write_text("\n".join(lines) + "\n")
    found = tracing.disorder(trace, ["strace-0-1"])
    assert found == [] if fault is None else fault in found[0]


@pytest.fixture
def strace() -> str:
    """The program; skips where it is missing or may not trace."""
    program = shutil.which("strace")
    if program is None:
        pytest.skip("no strace here")
    tried = subprocess.run([program, *tracing.OPTIONS, "-o", "/dev/null", "true"], capture_output=True, text=True, timeout=60, check=False)
    if tried.returncode:
        pytest.skip(f"tracing is refused here: {tried.stderr.strip()}")
    return program


def post(service: Service, connection: int, count: int) -> list[str]:
    """One line at a time over one connection, by turns as a single post and as a body of lines; the ids that were acknowledged."""
    acknowledged = []
    with httpx.Client(base_url=service.url, headers={"Authorization": f"Bearer {service.keys['trainer']}"}, timeout=60) as client:
        for number in range(count):
            id_ = f"strace-{connection}-{number}"
            kind = "application/json" if number % 2 else "application/x-ndjson"
            answer = client.post("/v1/trajectories", content=json.dumps(envelope(id=id_)), headers={"Content-Type": kind})
            if answer.status_code in (200, 201) and answer.json()["status"] == "created":
                acknowledged.append(id_)
    return acknowledged


def traced(strace: str, folder: Path, posts: int, *, swapped: bool = False) -> list[str]:
    trace = folder / "trace"
    began = time.monotonic()
    with (
        serving(folder, parts=PARTS, swapped=swapped, before_api=(strace, *tracing.OPTIONS, "-o", str(trace))) as service,
        ThreadPoolExecutor(CONNECTIONS) as pool,
    ):
        shares = pool.map(lambda connection: post(service, connection, posts // CONNECTIONS), range(CONNECTIONS))
        acknowledged = [id_ for share in shares for id_ in share]
        until(lambda: acknowledged[-1] in trace.read_text(errors="replace"), RECOVERY_S, "the trace is written")
    assert len(acknowledged) == posts
    found = tracing.disorder(trace, acknowledged)
    sys.stderr.write(f"\n{posts} posts, {trace.stat().st_size >> 20} MiB of trace, {time.monotonic() - began:.0f} s, {len(found)} out of order\n")
    return found


@pytest.mark.slow
def test_flush_returns_before_commit_and_commit_before_the_status_line(strace: str, tmp_path: Path) -> None:
    assert traced(strace, tmp_path, 2_000) == []


@pytest.mark.slow
def test_the_trace_tells_where_commit_and_flush_are_swapped(strace: str, tmp_path: Path) -> None:
    assert len(traced(strace, tmp_path, 40, swapped=True)) == 40
