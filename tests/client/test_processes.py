"""Spools, pickles and forks: what one process leaves, another one finds, and nobody's threads are anybody else's."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from inspector.client import AsyncClient, Client
from inspector.client.batches import batch_of
from inspector.client.lines import line_of
from inspector.client.spool import Spool
from tests.client.conftest import KEY, envelope, spools, until
from tests.client.server import serving

ROOT = Path(__file__).parents[2]
CHILD = """
import sys
from inspector.client import Client
from tests.client.conftest import envelope
url, folder, first, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
client = Client(url, "ins_test", spool_dir=folder, batch_lines=7, batch_ms=1, follow=False, post_timeout_s=5)
for number in range(first, first + count):
    client.submit(envelope(number))
    if number % 10 == 9:
        print(number if client.flush(20) else "lost", flush=True)
"""


def child(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", CHILD, *map(str, arguments)], stdout=subprocess.PIPE, text=True, cwd=ROOT)


def batches(first: int, count: int):
    return [batch_of([line_of(b'{"id":"t%d"}' % number)]) for number in range(first, first + count)]


def drained(spool: Spool) -> list[str]:
    ids = []
    while (batch := spool.head()) is not None:
        ids += [line_of(text).asked.id for text in batch.texts()]
        spool.done(batch.number)
    return ids


def test_a_killed_process_loses_nothing_that_was_flushed(client, service, tmp_path):
    """Killed at a moment of its own choosing's worst kind: while it writes on, the service away."""
    service.fault = 503
    with serving(service) as url:
        process = child(url, tmp_path, 0, 100_000)
        flushed = -1
        for line in process.stdout:
            flushed = int(line)
            if flushed >= 199:
                break
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        process.stdout.close()
        service.fault = None
        service.stopped.clear()
        one = client(url, spool_dir=tmp_path)
        one.submit(envelope(10**6))
        assert one.flush(30, delivered=True)
        until(lambda: "t1000000" in service.lines)
    numbers = [int(name[1:]) for name in service.order[:-1]]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) > flushed


def test_two_living_processes_share_a_folder(service, tmp_path):
    service.fault = 503
    with serving(service) as url:
        processes = [child(url, tmp_path, first, 50) for first in (0, 1000)]
        assert all("lost" not in process.communicate(timeout=60)[0] for process in processes)
        service.fault = None
        with Client(url, KEY, spool_dir=tmp_path) as one:
            one.submit(envelope(5000))
            assert one.flush(30, delivered=True)
    assert sorted(int(name[1:]) for name in service.lines) == [*range(50), *range(1000, 1050), 5000]
    assert not spools(tmp_path)


def test_a_folder_in_use_is_left_alone_and_a_free_one_is_taken_once(tmp_path):
    first = Spool(tmp_path, "scope", max_bytes=1 << 20)
    first.append(batches(0, 3))
    assert Spool(tmp_path, "scope", max_bytes=1 << 20).adopt() == 0
    first.close()
    second = Spool(tmp_path, "scope", max_bytes=1 << 20)
    assert second.adopt() == 3
    assert Spool(tmp_path, "scope", max_bytes=1 << 20).adopt() == 0
    assert drained(second) == ["t0", "t1", "t2"]
    second.tidy()
    assert not list(tmp_path.iterdir())


def test_what_was_spooled_for_another_project_is_not_sent(tmp_path):
    first = Spool(tmp_path, "theirs", max_bytes=1 << 20)
    first.append(batches(0, 1))
    first.close()
    assert Spool(tmp_path, "ours", max_bytes=1 << 20).adopt() == 0
    assert Spool(tmp_path, "ours", scopes=["theirs"], max_bytes=1 << 20).adopt() == 1


@pytest.mark.parametrize("cut", [1, 10, 30, 40])
def test_a_torn_tail_costs_only_the_record_that_no_flush_had_promised(tmp_path, cut):
    first = Spool(tmp_path, "scope", max_bytes=1 << 20)
    first.append(batches(0, 3))
    first.close()
    (path,) = spools(tmp_path)
    os.truncate(path, path.stat().st_size - cut)
    second = Spool(tmp_path, "scope", max_bytes=1 << 20)
    second.adopt()
    assert drained(second) == ["t0", "t1"]


def test_a_damaged_record_is_counted_and_left_out(tmp_path):
    spool = Spool(tmp_path, "scope", max_bytes=1 << 20)
    spool.append(batches(0, 3))
    (path,) = spools(tmp_path)
    size = path.stat().st_size // 3
    with path.open("r+b") as file:
        file.seek(size + 30)
        file.write(b"\xff\x00\xff")
    assert drained(spool) == ["t0", "t2"]
    assert spool.corrupt == 1


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_pickled_client_works_elsewhere(service, url, kind, client, tmp_path):
    service.log(scope="environment_version", action="set_state", environment="e/x", version="1", state="retired", run="run7")
    one = client(run="run7", spool_dir=tmp_path)
    one.decide(envelope(0), wait_s=5.0)
    until(lambda: one.admit("e/x", "1").would_refuse)
    copy = pickle.loads(pickle.dumps(one))
    assert copy._courier is None
    assert copy.admit("e/x", "1").would_refuse
    copy.submit(envelope(1))
    assert copy.flush(5)
    copy.close(5)
    assert service.order == ["t0", "t1"]
    assert KEY not in repr(copy._options)


def in_child(one: Client, number: int, pipe) -> None:
    one.submit(envelope(number))
    pipe.send((one.flush(10), one.decide(envelope(number + 1), wait_s=10.0).unaudited, one.stats.submitted))


def test_a_forked_client_works_and_leaves_its_parents_alone(service, client, tmp_path):
    one = client(spool_dir=tmp_path)
    assert one.decide(envelope(0), wait_s=5.0).unaudited == 0
    context = multiprocessing.get_context("fork")
    for number in (10, 20):
        here, there = context.Pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is what is tried here
            process = context.Process(target=in_child, args=(one, number, there))
            process.start()
        assert here.poll(20)
        assert here.recv() == (True, 0, 2)
        process.join(10)
        assert process.exitcode == 0
        assert one.decide(envelope(number + 2), wait_s=5.0).unaudited == 0
    assert service.order == ["t0", "t10", "t11", "t12", "t20", "t21", "t22"]


SCRIPT = """
import sys, time
from inspector.client import Client
from tests.client.conftest import envelope
client = Client(sys.argv[1], "ins_test", spool_dir=sys.argv[2] if len(sys.argv) > 2 else None, follow=False)
client.submit([envelope(number) for number in range(5)])
"""


def test_a_process_that_ends_without_close_still_sends(service, url):
    subprocess.run([sys.executable, "-W", "error", "-c", SCRIPT, url], check=True, timeout=30, cwd=ROOT)
    assert service.order == [f"t{number}" for number in range(5)]


def test_a_process_ends_in_bounded_time_and_spools_when_the_service_hangs(service, url, tmp_path):
    service.fault = "hang"
    began = time.monotonic()
    subprocess.run([sys.executable, "-W", "error", "-c", SCRIPT, url, str(tmp_path)], check=True, timeout=30, cwd=ROOT)
    assert time.monotonic() - began < 20
    spool = Spool(tmp_path, next(tmp_path.iterdir()).name.partition("-")[0], max_bytes=1 << 30)
    assert spool.adopt() == 5


def test_importing_the_client_loads_the_base_install_alone():
    """Names of everything that the base install brings; whatever else appears was imported by us."""
    base = {"anyio", "certifi", "h11", "httpcore", "httpx", "idna", "inspector", "msgspec", "sniffio", "zstandard", "typing_extensions", "exceptiongroup"}
    block = "import sys\nfor name in ('click', 'rich', 'pygments', 'numpy', 'h2', 'brotli', 'socksio', 'trio', 'uvloop'): sys.modules[name] = None\n"
    ask = "import inspector.client\nprint(*{name.partition('.')[0] for name, module in sys.modules.items() if module is not None})"
    loaded = subprocess.run([sys.executable, "-c", block + ask], check=True, capture_output=True, text=True, timeout=60, cwd=ROOT).stdout.split()
    foreign = {name for name in loaded if name not in sys.stdlib_module_names and not name.startswith("_")}
    assert foreign <= base
