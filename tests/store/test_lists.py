"""Every list is one keyset page of an index: over a hundred thousand rows nothing is scanned or sorted that is not shown."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import Engine
from sqlmodel import Session

from inspector.store import decisions, environments, groups, look_backs, probe_work, probes, replays, reviews, runs, states, trajectories, triage, work
from inspector.store.probes import SCAN as SCAN_TASKS
from inspector.store.probes import Place
from inspector.store.session import connect, driver, transaction
from inspector.store.trajectories import SCAN, Filter

ROWS = 100_000
LIMIT = 50
PROBES = 20_000
OURS, SIZE = 1, ROWS // 2  # the other half is another project's
BIG = {
    "trajectory",
    "verdict",
    "decision",
    "work",
    "run",
    "environment_version",
    "project_environment",
    "project_task",
    "task",
    "rollout_group",
    "review",
    "probe",
    "probe_work",
    "replay",
}
SINCE = datetime(2026, 1, 2, tzinfo=UTC)  # nearly all were judged after it
MIDDLE = UUID(int=ROWS // 8)  # of what is ours and of one environment

# The first half of everything is ours and the other half, all newer, another project's: who walks the wrong index walks far.
FILL = f"""
INSERT INTO project (uuid, name) SELECT lpad(to_hex(p), 32, '0')::uuid, 'p' || p FROM generate_series(1, 2) p;
INSERT INTO feed (project, epoch, last) SELECT id, uuid, {SIZE} FROM project;
INSERT INTO environment_version (environment, version) SELECT 'team/e' || e, '1' FROM generate_series(1, {ROWS}) e;
INSERT INTO project_environment (project, environment_version) SELECT 1 + (id > {SIZE})::int, id FROM environment_version;
INSERT INTO task (environment_version, task) SELECT id, 't' FROM environment_version;
UPDATE task SET state = 'retired' WHERE id % 10000 = 0;
UPDATE environment_version SET state = 'watch' WHERE id % 10000 = 0;
INSERT INTO run (project, run) SELECT 1 + (r > {SIZE})::int, 'r' || r FROM generate_series(1, {ROWS}) r;
INSERT INTO rollout_group (project, run, name, closed, audited, touched_at)
 SELECT 1, g, 'g', g % 10 > 0, 1, now() - interval '1 day' * (g % 2) FROM generate_series(1, {ROWS}) g;
INSERT INTO trajectory (key, project, environment_version, task, run, group_id, step, reward, segment, place, length, selection, line, sha256, id)
 SELECT lpad(to_hex(n), 32, '0')::uuid, 1 + (n > {SIZE})::int, 1 + n / (1 + {SIZE} / 2), 1 + n / 1000, 1 + n / (1 + {SIZE} / 2),
 n, 1, 0, 1, 0, 1, 1, 0, '', 'i' || n FROM generate_series(1, {ROWS}) n;
INSERT INTO project_task (project, task) SELECT 1 + (id > {SIZE})::int, id FROM task;
INSERT INTO verdict (key, project, content, state, probability, policy, verdict, action, open, final, retry, seq, outcomes)
 SELECT key, project, n % 2, n % 2, (n * 7919 % 1000) / 1000.0, 1, CASE WHEN n % 100 < 80 THEN 1 WHEN n % 100 < 98 THEN 2 ELSE 3 END,
 n % 2, n % 100 >= 80, true, false, n, '\\x01' FROM (SELECT *, row_number() OVER (PARTITION BY project ORDER BY key) n FROM trajectory) t;
INSERT INTO decision (project, seq, key, body)
 SELECT project, seq, key, '{{"seq": 1, "scope": "trajectory", "action": "exclude"}}' FROM verdict;
INSERT INTO review (project, key, person, judgement, seq, reviewed_at)
 SELECT project, key, 'mira', 'accept', seq, '2026-01-01Z'::timestamptz + interval '1 minute' * seq FROM verdict;
INSERT INTO work (project, key) SELECT project, key FROM trajectory;
INSERT INTO work (project, key, claims, until) SELECT project, key, 1 + (n % 2), now() - interval '1 second' * (n % 100 - 50)
 FROM (SELECT *, row_number() OVER () n FROM trajectory LIMIT 20000) t;
INSERT INTO work (project, group_id, lane, added_at) SELECT 1, g, 1, now() - interval '1 hour' * (g % 1000 = 0)::int FROM generate_series(1, 20000) g;
INSERT INTO probe (id, project, environment_version, depth, priority, state, ended_at)
 SELECT lpad(to_hex(n), 32, '0')::uuid, 1 + (n > {PROBES} / 2)::int, 1, 'quick', 1, 'done', now() FROM generate_series(1, {PROBES}) n;
UPDATE probe SET state = 'running', ended_at = NULL WHERE id < '00000000-0000-0000-0000-00000000000a';
INSERT INTO task (environment_version, task) SELECT 1 + (n > {PROBES} / 2)::int, 'p' || n FROM generate_series(1, {PROBES}) n;
INSERT INTO probe_work (probe, task, outcomes, report, closed_at)
 SELECT lpad(to_hex(1 + n / 1000), 32, '0')::uuid, {ROWS} + n, '{{sound}}', '{{}}', now() FROM generate_series(1, {PROBES}) n;
UPDATE task t SET probed = w.id, outcomes = w.outcomes, gravity = 899 FROM probe_work w WHERE w.task = t.id;
INSERT INTO probe_work (probe, task, due_at, until) SELECT '{UUID(int=1)}', 1 + n, now() + interval '1 second' * n, now() - interval '1 hour' * (n % 2)
 FROM generate_series(1, {PROBES}) n;
INSERT INTO replay (key, project, environment_version, task, state, posted, due_at, until, closed_at)
 SELECT key, project, 1, 1, '\\x01', 1, now() + interval '1 second' * (n % 1000), now() - interval '1 hour' * (n % 2), CASE WHEN n % 10 > 0 THEN now() END
 FROM (SELECT *, row_number() OVER () n FROM trajectory) t;
ANALYZE;
"""


@pytest.fixture(scope="module")
def engine(module_database: str) -> Iterator[Engine]:
    with psycopg.connect(module_database, autocommit=True) as connection:
        connection.execute(FILL)
    engine = connect(module_database)
    yield engine
    engine.dispose()


class Recording(psycopg.Cursor[Any]):
    """Remembers what it was asked."""

    asked: list[tuple[Any, Any]] = []  # noqa: RUF012

    def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
        self.asked.append((query, params))
        return super().execute(query, params, **options)


def plans(engine: Engine, act: Callable[[Session], object]) -> list[dict[str, Any]]:
    """The plans of the statements of `act` once the server has prepared them and may have chosen a generic plan; all is rolled back."""
    with Session(engine) as session:
        connection = driver(session)
        connection.cursor_factory, Recording.asked = Recording, []
        act(session)
        connection.cursor_factory = psycopg.Cursor
        found = [_plan(connection, query, params) for query, params in dict(Recording.asked).items()]
        session.rollback()
        session.connection().invalidate()  # with all that it has prepared
    assert found
    return found


def _plan(connection: psycopg.Connection[Any], query: str, params: Any) -> dict[str, Any]:
    known = {row[0] for row in connection.execute("SELECT name FROM pg_prepared_statements", prepare=False)}
    for _ in range(8):
        connection.execute(query, params, prepare=True)
    [name] = {row[0] for row in connection.execute("SELECT name FROM pg_prepared_statements", prepare=False)} - known
    given = [params[key] for key in _in_order(query, params)] if isinstance(params, dict) else list(params or ())
    values = sql.SQL(", ").join(map(sql.Literal, given))
    explain = sql.SQL("EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) EXECUTE {}").format(sql.Identifier(name))
    explain += sql.SQL("({})").format(values) if given else sql.SQL("")
    row = connection.execute(explain, prepare=False).fetchone()
    assert row is not None
    plan: dict[str, Any] = row[0][0]["Plan"]
    return plan


def _in_order(query: str, params: dict[str, Any]) -> list[str]:
    """Named parameters in the order of their first use, as psycopg numbers them."""
    return sorted((name for name in params if f"%({name})s" in query), key=lambda name: query.index(f"%({name})s"))


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)


def touched(node: dict[str, Any]) -> float:
    return float((node["Actual Rows"] + node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)) * node["Actual Loops"])


LISTS: dict[str, tuple[Callable[[Session], object], str, int]] = {
    "newest": (lambda s: trajectories.page(s, OURS, Filter(), None, LIMIT), "trajectory_newest", LIMIT + 1),
    "newest, from the middle": (lambda s: trajectories.page(s, OURS, Filter(), MIDDLE, LIMIT), "trajectory_newest", LIMIT + 1),
    "by environment": (lambda s: trajectories.page(s, OURS, Filter(environment_version=1), MIDDLE, LIMIT), "trajectory_by_environment", LIMIT + 1),
    "by task": (lambda s: trajectories.page(s, OURS, Filter(task=11), MIDDLE, LIMIT), "trajectory_by_task", LIMIT + 1),
    "by run": (lambda s: trajectories.page(s, OURS, Filter(run=1), MIDDLE, LIMIT), "trajectory_by_run", LIMIT + 1),
    "quarantined": (lambda s: trajectories.page(s, OURS, Filter(verdict=3), MIDDLE, LIMIT), "verdict_worst", LIMIT + 1),
    "accepted": (lambda s: trajectories.page(s, OURS, Filter(verdict=1), MIDDLE, LIMIT), "trajectory_newest", SCAN),
    "pending, of which there is none": (lambda s: trajectories.page(s, OURS, Filter(verdict=0), MIDDLE, LIMIT), "trajectory_newest", SCAN),
    "run and environment": (lambda s: trajectories.page(s, OURS, Filter(run=1, environment_version=1), MIDDLE, LIMIT), "trajectory_by_run", SCAN),
    "run and verdict": (lambda s: trajectories.page(s, OURS, Filter(run=1, verdict=3), MIDDLE, LIMIT), "trajectory_by_run", SCAN),
    "triage": (lambda s: triage.page(s, OURS, None, LIMIT), "verdict_triage", LIMIT),
    "triage, further on": (lambda s: triage.page(s, OURS, triage.Cursor(2, 0.5, MIDDLE), LIMIT), "verdict_triage", LIMIT),
    "how many wait": (lambda s: triage.counts(s, OURS, LIMIT), "verdict_triage", LIMIT),
    "how many were judged since": (lambda s: reviews.count_since(s, OURS, SINCE, LIMIT), "review_newest", LIMIT),
    "feed": (lambda s: decisions.page(s, OURS, None, SIZE // 2, LIMIT), "decision_pkey", LIMIT),
    "snapshot": (lambda s: decisions.standing(s, OURS, SIZE, SIZE // 2, LIMIT), "verdict_standing", 2 * LIMIT),
    "environments": (lambda s: environments.page(s, OURS, ROWS // 4, LIMIT), "project_environment_pkey", LIMIT),
    "runs": (lambda s: runs.page(s, OURS, ROWS // 4, LIMIT), "run_newest", LIMIT),
    "newest runs": (lambda s: runs.page(s, OURS, None, LIMIT), "run_newest", LIMIT),
    "history of one": (lambda s: decisions.history(s, OURS, MIDDLE), "decision_by_key", 1),
    "the newest of a run": (lambda s: runs.shares(s, 1, 30), "trajectory_by_run", 60),
    "the same steps as half of all": (lambda s: trajectories.twins(s, OURS, [0, 1]), "verdict_content", 16),
    "the newest rollouts of tasks": (lambda s: trajectories.newest_rewards(s, OURS, range(1, 21), 16), "trajectory_by_task", 20 * 2 * 16),
    "the same state as half of all": (lambda s: trajectories.same_state(s, OURS, [0, 1]), "verdict_state", 16),
    "known ids": (lambda s: trajectories.known(s, OURS, [f"i{n}" for n in range(500)]), "trajectory_id", 500),
    "twins of a block": (lambda s: look_backs.disagreeing(s, [UUID(int=n + 1) for n in range(500)]), "verdict_content", 500 * 8),
    "those that left the same as a block": (lambda s: look_backs.disagreeing(s, [UUID(int=n + 1) for n in range(500)]), "verdict_state", 500 * 8),
    "the oldest of all": (lambda s: trajectories.any_before(s, OURS, MIDDLE), "trajectory_newest", 1),
    "states": (lambda s: states.page(s, OURS, None, LIMIT), "task_not_active", LIMIT),
    "fresh work": (lambda s: work._lease(s, "lane = 0 AND claims = 0", "priority, id", 500, 1 << 24, 30), "work_next", 500),
    "suspect work": (lambda s: work._lease(s, "claims = 1 AND until < statement_timestamp()", "until", 16, 1 << 24, 30), "work_leased", 500),
    "overdue late checks": (lambda s: work.claim_overdue(s, 600, 30, block=LIMIT), "work_overdue", LIMIT),
    "late checks that are asked for again": (lambda s: work.add_late(s, [(1, 7), (1, 8)]), "work_late", LIMIT),
    "probes": (lambda s: probes.page(s, OURS, None, LIMIT), "probe_newest", LIMIT),
    "probes, further on": (lambda s: probes.page(s, OURS, UUID(int=PROBES // 4), LIMIT), "probe_newest", LIMIT),
    "tasks of a probe": (lambda s: probes.tasks(s, UUID(int=3), PROBES // 8, LIMIT), "probe_work_of", LIMIT),
    "probes of a version": (lambda s: probes.of_version(s, OURS, 1, UUID(int=PROBES // 4), LIMIT), "probe_by_version", LIMIT),
    "a task of a probe": (lambda s: probes.task_of(s, probes.find(s, OURS, UUID(int=3)), f"p{PROBES // 10 + 5}"), "probe_work_by_task", LIMIT),
    "what was last said": (lambda s: probes.gravest(s, 1, Place(899, ROWS + 10), LIMIT), "task_gravest", LIMIT),
    "what was last said, of an outcome that none has": (lambda s: probes.gravest(s, 1, None, LIMIT, "flaky"), "task_gravest", SCAN_TASKS),
    "what was said of a block": (lambda s: probes.said(s, range(ROWS, ROWS + 500)), "task_pkey", 500),
    "probes that are not over": (lambda s: probes.waiting(s), "probe_open", LIMIT),
    "probe work that is due": (lambda s: probe_work.claim(s, 30), "probe_work_next", LIMIT),
    "whether probe work is due": (lambda s: probe_work.may_be_claimed(s), "probe_work_next", LIMIT),
    "replays that are due": (lambda s: replays.claim(s, 30), "replay_next", LIMIT),
    "whether replays are due": (lambda s: replays.may_be_claimed(s), "replay_next", LIMIT),
    "what came of the replays of a block": (lambda s: replays.of(s, [UUID(int=n + 1) for n in range(500)]), "replay_of", 500),
    "quiet groups": (lambda s: groups.close_quiet(s, 60, LIMIT), "rollout_group_open", LIMIT),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_reads_no_more_of_its_index_than_it_shows(engine: Engine, name: str) -> None:
    act, index, bound = LISTS[name]
    found = [node for plan in plans(engine, act) for node in nodes(plan)]
    assert not [n["Relation Name"] for n in found if n["Node Type"] == "Seq Scan" and n["Relation Name"] in BIG]
    assert index in {n.get("Index Name") for n in found}
    assert max(touched(n) for n in found) <= bound
    assert max((touched(below) for n in found if "Sort" in n["Node Type"] for below in n["Plans"]), default=0) <= max(LIMIT + 1, 500)


NARROWED = {
    "environment": (triage.Narrowing(environment_version=1), None),
    "run": (triage.Narrowing(run=1), None),
    "verdict": (triage.Narrowing(verdict=3), None),
    "a cause that nothing has": (triage.Narrowing(cause=6), None),
    "run, further on": (triage.Narrowing(run=1), triage.Cursor(2, 0.5, MIDDLE)),
}


@pytest.mark.parametrize("name", NARROWED)
def test_narrowed_triage_reads_one_stretch_of_its_index_and_the_trajectories_in_it(engine: Engine, name: str) -> None:
    narrowed, after = NARROWED[name]
    found = [node for plan in plans(engine, lambda s: triage.narrowed(s, OURS, narrowed, after, LIMIT)) for node in nodes(plan)]
    assert not [n["Relation Name"] for n in found if n["Node Type"] == "Seq Scan" and n["Relation Name"] in BIG]
    assert {"verdict_triage", "trajectory_pkey"} <= {n.get("Index Name") for n in found}
    assert max(touched(n) for n in found) <= triage.SCAN


def walk(engine: Engine, narrowed: Filter, limit: int, between: Callable[[], None] = lambda: None) -> tuple[list[UUID], list[int]]:
    """Every key in the order of the pages, and how many rows each page looked at."""
    keys: list[UUID] = []
    scanned = []
    before = None
    while True:
        with transaction(engine) as session:
            page = trajectories.page(session, OURS, narrowed, before, limit)
        keys += [row.key for row in page.rows]
        scanned.append(page.scanned)
        if page.last is None:
            return keys, scanned
        before = page.last
        between()


def test_paging_visits_each_row_once_while_others_arrive(database: str) -> None:
    engine = connect(database)
    rng = random.Random(5)
    numbers = iter(range(10_000, 10**6))
    with transaction(engine) as session:
        driver(session).execute(FILL.split("INSERT INTO run ")[0].replace(str(ROWS), "10"))
        _add(session, range(5000))

    def arrive() -> None:
        with transaction(engine) as session:
            _add(session, [next(numbers) for _ in range(rng.randrange(100))])

    for narrowed in (Filter(), Filter(environment_version=1), Filter(verdict=3), Filter(environment_version=1, verdict=3), Filter(verdict=1)):
        expected = {UUID(int=n + 1) for n in range(5000) if narrowed.verdict is None or n % 50 == (0 if narrowed.verdict == 3 else 1)}
        keys, scanned = walk(engine, narrowed, 400 if narrowed.verdict is None else 20, arrive)
        assert len(keys) == len(set(keys))
        assert {key for key in keys if key.int <= 5000} == expected
        assert keys == sorted(keys, reverse=True)
        assert max(scanned) <= SCAN
    engine.dispose()


def _add(session: Session, numbers: Any) -> None:
    """Trajectories of one project; of fifty one is quarantined, one accepted, the others wait."""
    connection = driver(session)
    connection.execute(
        "INSERT INTO trajectory (key, project, environment_version, task, segment, place, length, selection, line, sha256, id)"
        " SELECT lpad(to_hex(n + 1), 32, '0')::uuid, 1, 1, 1, 1, 0, 1, 1, 0, '', 'i' || n FROM unnest(%s::int[]) n",
        (list(numbers),),
    )
    connection.execute(
        "INSERT INTO verdict (key, project, probability, policy, verdict, action, open, final, retry, outcomes)"
        " SELECT lpad(to_hex(n + 1), 32, '0')::uuid, 1, 0, 1,"
        " CASE n %% 50 WHEN 0 THEN 3 ELSE 1 END, 0, false, true, false, '\\x01' FROM unnest(%s::int[]) n WHERE n %% 50 < 2",
        (list(numbers),),
    )


def test_a_page_says_how_far_it_looked(engine: Engine) -> None:
    """Nothing waits: each page looks at all that it may, shows nothing and goes on where it ended."""
    keys, scanned = walk(engine, Filter(verdict=0), LIMIT)
    assert keys == []
    assert scanned[:-1] == [SCAN] * (SIZE // SCAN)
    assert sum(scanned) == SIZE


def test_a_page_that_is_full_says_how_far_it_looked(engine: Engine) -> None:
    with transaction(engine) as session:
        page = trajectories.page(session, OURS, Filter(run=1, verdict=3), None, 10)
        everything = trajectories.page(session, OURS, Filter(run=1), None, page.scanned)
    assert page.rows[-1].key == everything.rows[-1].key == page.last
