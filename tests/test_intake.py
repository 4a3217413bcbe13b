"""Posting twice is posting once, and what is acknowledged is durable."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inspector.embedded import Stack, installation
from inspector.errors import StorageFull, Unavailable
from inspector.intake import Intake, Posting, Receipt, Status
from inspector.settings import Limits
from inspector.store import trajectories
from inspector.store.segments import SegmentReader, SegmentWriter
from inspector.store.session import connect, transaction
from inspector.store.stretches import CorruptSegment
from tests.audit.conftest import Bell, Desk, OpenDesk, episode

CREATED, DUPLICATE, CONFLICT, REJECTED = Status.CREATED, Status.DUPLICATE, Status.CONFLICT, Status.REJECTED


def posting(lines: Sequence[bytes]) -> Posting:
    return Posting(lines, {}, None)


def raw(desk: Desk, id_: str) -> bytes:
    with transaction(desk.engine) as session:
        subject = trajectories.find(session, desk.project.id, trajectories.key_of(session, desk.project.id, id_))
    return SegmentReader(desk.root).line(subject.project_uuid, subject.location)


def count(desk: Desk, table: str) -> int:
    with psycopg.connect(desk.engine.url.render_as_string(hide_password=False).replace("+psycopg", "")) as connection:
        row = connection.execute(f"SELECT count(*) FROM {table} WHERE project = %s", (desk.project.id,)).fetchone()
    assert row is not None
    return int(row[0])


def line(id_: str, version: int = 0) -> bytes:
    return json.dumps(episode(id_, extra={"version": version})).encode()


BAD = b'{"id": "bad'
OFFERED = [line(f"i{number}", version) for number in range(4) for version in range(2)] + [BAD]


@pytest.fixture
def fresh_project(open_desk: OpenDesk) -> Callable[[], Desk]:
    """A new project in the same database, for each example of a property."""
    numbers = iter(range(10_000))
    return lambda: open_desk(name=f"p{next(numbers)}")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bodies=st.lists(st.lists(st.sampled_from(range(len(OFFERED))), max_size=6), min_size=1, max_size=5))
def test_any_lines_in_any_batches_are_answered_as_if_they_came_one_by_one(fresh_project: Callable[[], Desk], bodies: list[list[int]]) -> None:
    desk = fresh_project()
    first: dict[str, bytes] = {}
    for body in bodies:
        lines = [OFFERED[number] for number in body]
        for sent, receipt in zip(lines, desk.intake.accept(desk.project, posting(lines)), strict=True):
            assert receipt.status is _expected(sent, first)
            assert receipt.key == (desk.key(receipt.id) if receipt.id else None)
    assert {id_: raw(desk, id_) for id_ in first} == first
    assert count(desk, "trajectory") == count(desk, "work") == len(first)


def _expected(sent: bytes, first: dict[str, bytes]) -> Status:
    """One by one: the first line of an id is created, the same again is a duplicate, anything else a conflict."""
    if sent == BAD:
        return REJECTED
    id_ = json.loads(sent)["id"]
    if id_ not in first:
        first[id_] = sent
        return CREATED
    return DUPLICATE if first[id_] == sent else CONFLICT


def test_one_id_twice_in_a_body_is_compared_with_what_was_stored(desk: Desk) -> None:
    stored, other = line("a", 0), line("a", 1)
    assert [r.status for r in desk.intake.accept(desk.project, posting([stored, stored, other]))] == [CREATED, DUPLICATE, CONFLICT]
    assert [r.status for r in desk.intake.accept(desk.project, posting([other, other, stored]))] == [CONFLICT, CONFLICT, DUPLICATE]
    assert raw(desk, "a") == stored


def test_posting_again_changes_nothing(desk: Desk) -> None:
    lines = [line(f"i{n}") for n in range(30)]
    first = desk.intake.accept(desk.project, posting(lines))
    again = desk.intake.accept(desk.project, posting(lines))
    assert [r.key for r in again] == [r.key for r in first]
    assert {r.status for r in again} == {DUPLICATE}
    assert count(desk, "trajectory") == count(desk, "work") == 30


def test_threads_that_post_the_same_ids_lose_none_and_double_none(desk: Desk) -> None:
    """Overlapping ids in opposite orders, half of them with other bytes."""
    together = threading.Barrier(2)

    def post(thread: int) -> list[list[Receipt]]:
        answers = []
        for turn in range(200):
            ids = [f"{turn}-{n}" for n in range(6)]
            together.wait(60)
            lines = [line(id_, version=thread if n % 2 else 0) for n, id_ in enumerate(ids)]
            answers.append(desk.intake.accept(desk.project, posting(lines if thread else lines[::-1])))
        return answers

    with ThreadPoolExecutor(2) as pool:
        ours, theirs = pool.map(post, range(2))
    told: dict[str, dict[int, Receipt]] = {}
    for thread, answers in enumerate((ours, theirs)):
        for answer in answers:
            for receipt in answer:
                assert receipt.id is not None
                told.setdefault(receipt.id, {})[thread] = receipt
    assert len(told) == count(desk, "trajectory") == count(desk, "work") == 1200
    for id_, by_thread in told.items():
        [creator] = [thread for thread, receipt in by_thread.items() if receipt.status is CREATED]
        disputed = int(id_.split("-")[1]) % 2
        assert by_thread[1 - creator].status is (CONFLICT if disputed else DUPLICATE)
        assert by_thread[0].key == by_thread[1].key == desk.key(id_)
    for id_ in list(told)[::20]:
        creator = 0 if told[id_][0].status is CREATED else 1
        assert raw(desk, id_) == line(id_, version=creator if int(id_.split("-")[1]) % 2 else 0)


rewards = st.one_of(st.none(), st.just(0.0), st.just(-0.0), st.floats(allow_nan=False, allow_infinity=False))


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given_rewards=st.lists(rewards, min_size=1, max_size=10))
def test_not_scored_stays_not_scored_and_zero_stays_zero(fresh_project: Callable[[], Desk], given_rewards: list[float | None]) -> None:
    desk = fresh_project()
    desk.post(*(episode(f"i{n}", reward=reward, verifier=None) for n, reward in enumerate(given_rewards)))
    with transaction(desk.engine) as session:
        rows = trajectories.page(session, desk.project.id, trajectories.Filter(), None, 100).rows
        subjects = trajectories.subjects(session, [row.key for row in rows])
    for row in rows:
        expected = given_rewards[int(row.id[1:])]
        assert row.reward == subjects[row.key].reward == expected
        assert (row.reward is None) == (expected is None)
        assert json.loads(raw(desk, row.id))["reward"] == expected


@pytest.mark.parametrize("odd", [" ", "\n", " \t "], ids=["a space", "a newline", "white space"])
def test_the_bytes_come_back_as_they_were_sent(desk: Desk, odd: str) -> None:
    sent = (odd.replace("\n", "") + json.dumps(episode("a", extra={"ünï": "\u2028 ☃ \\ud83d\\ude00", "big": 10**40}), ensure_ascii=False, indent=None)).encode()
    sent = sent.replace(b'": ', b'" :  ') + (b"" if odd == "\n" else odd.encode())
    assert desk.intake.accept(desk.project, posting([sent]))[0].status is CREATED
    assert raw(desk, "a") == sent


# --- when something fails ---------------------------------------------------------------------------------------------

POST = """
import json, resource, sys
from pathlib import Path
from uuid import UUID
from inspector.errors import StorageFull, Unavailable
from inspector.intake import Intake, Posting, Project
from inspector.settings import Limits
from inspector.store.segments import SegmentWriter
from inspector.store.session import connect
from tests.audit.conftest import Bell
from tests.test_intake import line
import signal

url, root, project, uuid, selection, limit = sys.argv[1:]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
intake = Intake(connect(url), SegmentWriter(Path(root), max_bytes=1 << 28), Bell(), int(selection), Limits())
resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
for turn in range(400):
    try:
        answered = intake.accept(Project(int(project), UUID(uuid)), Posting([line(f"{turn}-{n}") for n in range(20)], {}, None))
    except (StorageFull, Unavailable) as error:
        print(json.dumps({"refused": type(error).__name__}), flush=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        again = intake.accept(Project(int(project), UUID(uuid)), Posting([line(f"{turn}-{n}") for n in range(20)], {}, None))
        print(json.dumps({"then": [r.status for r in again]}), flush=True)
        break
    print(json.dumps({"acknowledged": [r.id for r in answered]}), flush=True)
"""


def test_nothing_is_acknowledged_that_the_disk_refused(desk: Desk) -> None:
    """A file-size limit cuts an append in its middle; what was acknowledged before reads back, and the next post goes to a new file."""
    arguments = [desk.engine.url.render_as_string(hide_password=False).replace("+psycopg", ""), desk.root, desk.project.id, desk.project.uuid]
    command = [sys.executable, "-c", POST, *map(str, arguments), str(desk.intake.selection), "20000"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=True, env=dict(os.environ) | {"PYTHONPATH": str(Path(__file__).parent.parent)}
    )
    told = [json.loads(said) for said in done.stdout.splitlines()]
    acknowledged = [id_ for one in told for id_ in one.get("acknowledged", ())]
    assert told[-2] == {"refused": "Unavailable"}
    assert told[-1] == {"then": ["created"] * 20}
    assert len(acknowledged) >= 20
    assert count(desk, "trajectory") == len(acknowledged) + 20
    assert all(raw(desk, id_) == line(id_) for id_ in acknowledged)


def test_a_full_disk_is_said_and_nothing_of_the_posting_is_kept(desk: Desk, full_disk: Path) -> None:
    """A real file system of 1 MiB."""
    writer = SegmentWriter(full_disk, max_bytes=1 << 28)
    intake = Intake(desk.engine, writer, Bell(), desk.intake.selection, Limits())
    noise = [json.dumps(episode(f"big-{n}", says=os.urandom(30_000).hex())).encode() for n in range(64)]
    with pytest.raises(StorageFull):
        intake.accept(desk.project, posting(noise))
    assert count(desk, "trajectory") == count(desk, "work") == 0
    [receipt] = intake.accept(desk.project, posting([line("small")]))
    assert receipt.status is CREATED, "what fits is still taken"
    writer.close()


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True, timeout=10, check=False).returncode:
        pytest.skip("this user may not mount a small file system")
    yield place
    subprocess.run(["umount", str(place)], timeout=10, check=True)


class Striking(SegmentWriter):
    """Does something between the append and the rows."""

    strike: Callable[[], None]

    def append(self, *arguments: Any) -> Any:
        places = super().append(*arguments)
        self.strike()
        return places


def _kill_with_children(pid: int) -> None:
    """A server whose children live on for a moment may still answer."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for each in (pid, *map(int, children)):
        os.kill(each, signal.SIGKILL)


def test_a_database_that_dies_between_append_and_commit_acknowledges_nothing(tmp_path: Path) -> None:
    with Stack(tmp_path / "data", parts={"postgres"}) as stack:
        installation.migrate(stack.database_url)
        desk = _desk_of(stack.database_url, tmp_path)
        writer = Striking(tmp_path / "segments", max_bytes=1 << 28)
        process = stack.children["postgres"].process
        assert process is not None
        writer.strike = lambda: _kill_with_children(process.pid)
        intake = Intake(desk.engine, writer, Bell(), desk.intake.selection, Limits())
        with pytest.raises(Unavailable):
            intake.accept(desk.project, posting([line("a"), line("b")]))
        writer.strike = lambda: None
        receipts = _patiently(lambda: intake.accept(desk.project, posting([line("a"), line("b")])))
        assert [r.status for r in receipts] == [CREATED, CREATED]
        assert (count(desk, "trajectory"), raw(desk, "a")) == (2, line("a"))
        desk.engine.dispose()
        writer.close()


def _desk_of(url: str, root: Path) -> Desk:
    from inspector.intake import Project
    from inspector.store import projects, selections

    engine = connect(url)
    with transaction(engine) as session:
        uuid = projects.create(session, "alpha")
        project = Project(projects.by_name(session, "alpha")[0], uuid)
        selection = selections.ensure(session, ())
    return Desk(engine, root / "segments", (), project, Intake(engine, SegmentWriter(root / "unused", max_bytes=1), Bell(), selection, Limits()))


def _patiently(act: Callable[[], Any], attempts: int = 200) -> Any:
    """Again while the database is away, as a client would."""
    for _ in range(attempts):
        try:
            return act()
        except Unavailable:
            threading.Event().wait(0.1)
    return act()


def test_damage_on_disk_is_named_and_never_read_as_a_trajectory(desk: Desk) -> None:
    desk.intake.accept(desk.project, posting([line("a")]))
    [path] = desk.root.rglob("*.seg")
    stored = bytearray(path.read_bytes())
    stored[-10] ^= 1
    path.write_bytes(stored)
    with pytest.raises(CorruptSegment, match=path.name):
        raw(desk, "a")
