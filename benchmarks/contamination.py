"""Accounts for a made run of 1,000,000 trajectories on a real Postgres, against a count by hand: `python -m benchmarks.contamination [trajectories]`.

Updates of 128 rows are told through the product's own functions; 1 % of the trajectories are confirmed exploits whose
reward was overridden, 2 % are excluded, and half of the overridden were used as decided. One update in a hundred repeats
an earlier one's rows. Prints milliseconds of a report, and seconds of the account by three choices of what is bad.
"""

from __future__ import annotations

import math
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import psycopg
from sqlalchemy import Engine

from inspector.contamination import Account, account, report
from inspector.embedded import Stack, installation
from inspector.store import projects, runs, used
from inspector.store.codes import ACTION_CODE, CAUSE_CODE
from inspector.store.contamination import Chosen
from inspector.store.session import connect, driver, transaction
from inspector.store.used import Told, Use
from inspector.verdict import Action, Cause

ROWS, GROUP, ENVIRONMENTS = 128, 16, 5
RUN, TIMED, AT_ONCE = "made", 100, 50_000
OVERRIDDEN = -1.0
EXPLOIT = Chosen(cause=Cause.POLICY_EXPLOIT)
CHOICES = {"all that is excluded or overridden": Chosen(), "exploits": EXPLOIT, "one of five environments": Chosen(environment_versions=[1], everything=True)}


class Made(NamedTuple):
    """A trajectory and how it is used."""

    at: int
    environment: int
    action: Action
    reward: float

    @property
    def key(self) -> UUID:
        return UUID(int=(7 << 76) | (2 << 62) | self.at << 80 | self.at)

    def bad(self, chosen: Chosen) -> bool:
        if chosen.everything:
            return self.environment in (chosen.environment_versions or ())
        spared = self.action is Action.OVERRIDE_REWARD and self.reward <= OVERRIDDEN
        return self.action is not Action.KEEP and not spared and (chosen.cause is None or self.action is Action.OVERRIDE_REWARD)


def made(count: int) -> list[Made]:
    draw = random.Random(0)
    rows = []
    for at in range(count):
        luck, reward = draw.random(), draw.choice((0.0, 0.25, 0.5, 1.0))
        action = Action.OVERRIDE_REWARD if luck < 0.01 else Action.EXCLUDE if luck < 0.03 else Action.KEEP
        if action is Action.OVERRIDE_REWARD:
            reward = draw.choice((OVERRIDDEN, 1.0))
        rows.append(Made(at, 1 + at // GROUP % ENVIRONMENTS, action, reward))
    return rows


def updates(rows: list[Made]) -> Iterator[list[Made]]:
    for step, at in enumerate(range(0, len(rows), ROWS)):
        yield rows[at : at + ROWS] + (rows[at - ROWS : at] if step % 100 == 99 else [])


def post(engine: Engine, project: int, rows: list[Made]) -> None:
    with transaction(engine) as session:
        connection = driver(session)
        for n in range(1, ENVIRONMENTS + 1):
            connection.execute("INSERT INTO environment_version (id, environment, version) VALUES (%s, %s, '1')", (n, f"made/{n}"))
            connection.execute("INSERT INTO task (id, environment_version, task) VALUES (%s, %s, 't')", (n, n))
    for at in range(0, len(rows), AT_ONCE):
        with transaction(engine) as session:
            _copy(driver(session), project, rows[at : at + AT_ONCE])


def _copy(connection: psycopg.Connection[Any], project: int, rows: list[Made]) -> None:
    columns = "key, project, environment_version, task, group_id, reward, segment, place, length, selection, line, sha256, id"
    with connection.cursor().copy(f"COPY trajectory ({columns}) FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(["uuid", "int8", "int8", "int8", "int8", "float8", "int8", "int8", "int4", "int4", "int2", "bytea", "text"])
        for row in rows:
            place = (row.key, project, row.environment, row.environment, row.at // GROUP, row.reward)
            copy.write_row((*place, 0, 0, 0, 0, 0, bytes(32), f"run-{row.at}"))
    columns = "key, project, seq, reward_override, probability, policy, verdict, action, cause, open, final, retry, outcomes"
    with connection.cursor().copy(f"COPY verdict ({columns}) FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(["uuid", "int8", "int8", "float8", "float8", "int4", "int2", "int2", "int2", "bool", "bool", "bool", "bytea"])
        for row in rows:
            copy.write_row((row.key, project, *_stands(row), False, True, False, bytes([1]) * 20))


def _stands(row: Made) -> tuple[object, ...]:
    if row.action is Action.KEEP:
        return None, None, 0.01, 1, 1, ACTION_CODE[row.action], None
    exploit = row.action is Action.OVERRIDE_REWARD
    cause = Cause.POLICY_EXPLOIT if exploit else Cause.INFRASTRUCTURE
    return row.at + 1, OVERRIDDEN if exploit else None, 0.99, 1, 3, ACTION_CODE[row.action], CAUSE_CODE[cause]


def tell(engine: Engine, project: int, rows: list[Made]) -> list[float]:
    """Milliseconds of each of the last reports; all before them are kept in a few transactions, and nothing is advised."""
    reports = [_told(step, rows_of) for step, rows_of in enumerate(updates(rows), 1)]
    for at in range(0, len(reports) - TIMED, AT_ONCE // ROWS):
        with transaction(engine) as session:
            [(run, _)] = runs.ensure(session, project, [(RUN, None)]).values()
            for told in reports[at : min(at + AT_ONCE // ROWS, len(reports) - TIMED)]:
                used.add(session, project, run, told)
    with transaction(engine) as session:
        driver(session).execute("ANALYZE")
    took = []
    for told in reports[-TIMED:]:
        began = time.perf_counter()
        with transaction(engine) as session:
            report(session, project, RUN, told, share=0.02)
        took.append(1000 * (time.perf_counter() - began))
    return took


def _told(step: int, rows: list[Made]) -> Told:
    uses = [Use(f"run-{row.at}", 1.0, row.reward) for row in rows]
    return Told(step, "", step - 1, step, None, uses, msgspec.json.encode(uses))


def compare(told: Account, rows: list[Made], chosen: Chosen) -> bool:
    """Whether each number is that of a count by hand."""
    by_hand, tainted = [], False
    every: list[Made] = []
    for number, mine in enumerate(updates(rows), 1):
        bad = [row for row in mine if row.bad(chosen)]
        if bad or tainted:
            mass, share = (math.fsum(abs(row.reward) for row in some) for some in (bad, mine))
            by_hand.append((number, len(bad), len({row.at for row in bad}), mass, share, tainted))
        tainted, every = tainted or bool(bad), every + bad
    found = [(one.update.number, one.bad.rows, one.bad.trajectories, one.bad.mass, one.update.mass, one.inherited) for one in told.affected]
    totals = (len(every), len({row.at for row in every}), len({row.at // GROUP for row in every}), math.fsum(abs(row.reward) for row in every))
    return found == by_hand and tuple(told.bad) == totals


def main(count: int) -> int:
    rows = made(count)
    with tempfile.TemporaryDirectory() as folder, Stack(Path(folder), parts={"postgres"}) as stack:
        installation.migrate(stack.database_url)
        engine = connect(stack.database_url)
        with transaction(engine) as session:
            projects.create(session, "made")
            project, _ = projects.by_name(session, "made")
        post(engine, project, rows)
        took = sorted(tell(engine, project, rows))
        print(f"{len(took)} reports of {ROWS} rows: p50 {statistics.median(took):.1f} ms, p99 {took[int(0.99 * len(took))]:.1f} ms")
        with transaction(engine) as session:
            sizes = driver(session).execute("SELECT pg_total_relation_size('used'), pg_total_relation_size('run_step')").fetchone()
            run = driver(session).execute("SELECT id FROM run").fetchone()
        assert sizes is not None
        assert run is not None
        print(f"{sizes[0] / len(rows):.0f} bytes a row in used, {sizes[1] / len(rows):.0f} in the reports themselves")
        exact = True
        for name, chosen in CHOICES.items():
            began = time.perf_counter()
            with transaction(engine) as session:
                told = account(session, project, run[0], chosen)
            seconds = time.perf_counter() - began
            same = compare(told, rows, chosen)
            exact = exact and same
            print(f"{name}: {told.bad.rows} rows in {told.direct} updates, {seconds:.2f} s, {'exact' if same else 'WRONG'}")
        engine.dispose()
    return 0 if exact else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000))
