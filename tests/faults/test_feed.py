"""Followers of the decision log while writers stall, roll back, and lose their database: nobody misses a row."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest
from sqlalchemy import Engine
from sqlmodel import Session

from inspector.embedded import Stack, installation
from inspector.errors import Unavailable
from inspector.store import decisions, projects
from inspector.store.decisions import Numbered
from inspector.store.session import connect, driver, transaction
from inspector.verdict import Action, Decision, Scope
from tests.faults.fleet import CONTEXT, scalar, start, until

WRITERS = FOLLOWERS = 8
Rows = list[tuple[int, str]]  # (number, who wrote it and which of its decisions it is)
Append = Callable[[Session, int, list[str]], None]
Page = Callable[[Session, int, int], Rows]


def append(session: Session, project: int, names: list[str]) -> None:
    """The product's log."""
    entries = [Numbered(Decision(seq=0, scope=Scope.TRAJECTORY, action=Action.EXCLUDE, trajectory=name), None) for name in names]
    decisions.append(session, project, entries)


def page(session: Session, project: int, after: int) -> Rows:
    """The product's feed."""
    _, found = decisions.page(session, project, None, after, 100)
    return [(d.seq, d.trajectory or "") for d in found]


def append_by_identity(session: Session, project: int, names: list[str]) -> None:
    """The log that everyone writes first: the database numbers the rows as they are inserted."""
    driver(session).execute("INSERT INTO numbered (name) SELECT unnest(%s::text[])", (names,))


def page_by_identity(session: Session, project: int, after: int) -> Rows:
    """Its feed."""
    return list(driver(session).execute("SELECT seq, name FROM numbered WHERE seq > %s ORDER BY seq LIMIT 100", (after,)).fetchall())


LOGS: dict[str, tuple[Append, Page]] = {"counter": (append, page), "identity": (append_by_identity, page_by_identity)}


class RolledBack(Exception):
    """A writer that changed its mind."""


def write(url: str, log: str, project: int, writer: int, batches: int, told: str) -> None:
    """Batches with pauses before and after the numbers are taken; one in twenty is rolled back. Writes down what was committed."""
    engine, rng = connect(url, pool_size=1), random.Random(writer)
    with Path(told).open("w") as notes:
        for batch in range(batches):
            names = [f"{writer}-{batch}-{n}" for n in range(rng.randrange(1, 20))]
            back = rng.random() < 0.05
            try:
                _write_batch(engine, LOGS[log][0], project, names, rng, back)
                notes.write(json.dumps(["committed", names]) + "\n")
            except RolledBack:
                notes.write(json.dumps(["rolled back", names]) + "\n")
            except Unavailable:
                notes.write(json.dumps(["unknown", names]) + "\n")
                time.sleep(0.1)
            time.sleep(rng.random() * 0.02)


def _write_batch(engine: Engine, append: Append, project: int, names: list[str], rng: random.Random, back: bool) -> None:
    with transaction(engine) as session:
        append(session, project, names)
        if rng.random() < 0.3:
            time.sleep(rng.random() * 0.02)
        if back:
            raise RolledBack


def follow(url: str, log: str, project: int, stop: Event, told: str) -> None:
    """From the beginning to the end of the log, by its cursor alone."""
    engine, after, rows, ended = connect(url, pool_size=1), 0, Rows(), False
    while True:
        ended = stop.is_set()
        try:
            with transaction(engine) as session:
                found = LOGS[log][1](session, project, after)
        except Unavailable:
            time.sleep(0.1)
            continue
        rows += found
        if found:
            after = found[-1][0]
        elif ended:
            break
        time.sleep(0.002)
    Path(told).write_text(json.dumps(rows))


def run(stack: Stack, log: str, project: int, folder: Path, batches: int, *, kill: bool) -> tuple[list[Rows], dict[str, list[str]]]:
    """(what each follower saw, what the writers say they did)."""
    url, stop = stack.database_url, CONTEXT.Event()
    followers = [start(follow, url, log, project, stop, str(folder / f"follower-{at}")) for at in range(FOLLOWERS)]
    writers = [start(write, url, log, project, at, batches, str(folder / f"writer-{at}")) for at in range(WRITERS)]
    if kill:
        table = "decision" if log == "counter" else "numbered"
        until(lambda: scalar(url, f"SELECT count(*) > {batches * WRITERS} FROM {table}"), 120, "the writers are under way")  # about a tenth
        process = stack.children["postgres"].process
        assert process is not None
        os.kill(process.pid, signal.SIGKILL)
    for writer in writers:
        writer.join(300)
        assert writer.exitcode == 0
    stop.set()
    for follower in followers:
        follower.join(120)
        assert follower.exitcode == 0
    said: dict[str, list[str]] = {"committed": [], "rolled back": [], "unknown": []}
    for at in range(WRITERS):
        for noted in (folder / f"writer-{at}").read_text().splitlines():
            what, names = json.loads(noted)
            said[what] += names
    return [[tuple(row) for row in json.loads((folder / f"follower-{at}").read_text())] for at in range(FOLLOWERS)], said


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A Postgres of our own, since it is killed."""
    with Stack(tmp_path_factory.mktemp("feed"), parts={"postgres"}) as stack:
        installation.migrate(stack.database_url)
        yield stack


def new_project(stack: Stack, name: str) -> int:
    engine = connect(stack.database_url, pool_size=1)
    with transaction(engine) as session:
        projects.create(session, name)
        project = projects.by_name(session, name)[0]
    engine.dispose()
    return project


def logged(stack: Stack, project: int) -> Rows:
    engine = connect(stack.database_url, pool_size=1)
    with transaction(engine) as session:
        _, found = decisions.page(session, project, None, 0, 10**6)
    engine.dispose()
    return [(d.seq, d.trajectory or "") for d in found]


@pytest.mark.parametrize("batches", [pytest.param(40, id="short"), pytest.param(400, id="long", marks=pytest.mark.slow)])
def test_every_follower_sees_the_whole_log_in_order_although_postgres_is_killed(stack: Stack, tmp_path: Path, batches: int) -> None:
    project = new_project(stack, f"counter-{batches}")
    seen, said = run(stack, "counter", project, tmp_path, batches, kill=True)
    log = logged(stack, project)
    assert [seq for seq, _ in log] == list(range(1, len(log) + 1))
    assert said["rolled back"]
    assert said["unknown"], "the kill fell into some transaction"
    names = {name for _, name in log}
    assert set(said["committed"]) <= names, "what was committed is there"
    assert not names & set(said["rolled back"])
    assert names <= set(said["committed"]) | set(said["unknown"])
    for rows in seen:
        assert rows == log


def test_the_same_harness_catches_a_log_that_is_numbered_by_an_identity_column(stack: Stack, tmp_path: Path) -> None:
    engine = connect(stack.database_url, pool_size=1)
    with transaction(engine) as session:
        driver(session).execute("CREATE TABLE numbered (seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text)")
    seen, said = run(stack, "identity", 0, tmp_path, 40, kill=False)
    with transaction(engine) as session:
        log = [tuple(row) for row in driver(session).execute("SELECT seq, name FROM numbered ORDER BY seq").fetchall()]
    engine.dispose()
    assert len(log) == len(said["committed"])
    assert any(rows != log for rows in seen), "a follower must have missed rows"
    assert [seq for seq, _ in log] != list(range(1, len(log) + 1)), "and the numbers have gaps"
