"""What a run used of what is bad, against a count by hand; through the API."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from inspector.contamination import account, report
from inspector.contamination.lineage import inherits
from inspector.store import contamination, projects
from inspector.store.codes import ACTION_CODE, CAUSE_CODE
from inspector.store.contamination import Chosen
from inspector.store.session import connect, driver, transaction
from inspector.store.used import TOLERANCE, Told, Use
from inspector.verdict import Action, Cause


class Row(NamedTuple):
    """A trajectory as it stands."""

    id: str
    environment: int
    task: int
    group: int | None
    action: Action
    cause: Cause | None
    override: float | None
    posted: bool


class Step(NamedTuple):
    before: int
    after: int
    used: list[tuple[int, float, float | None]]  # position of the row, weight, reward


rewards = st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0, 3.0])
decided = st.one_of(
    st.just((Action.KEEP, None, None)),
    st.tuples(st.just(Action.EXCLUDE), st.sampled_from([Cause.POLICY_EXPLOIT, Cause.INFRASTRUCTURE, Cause.VERIFIER_DEFECT]), st.none()),
    st.tuples(st.just(Action.OVERRIDE_REWARD), st.just(Cause.POLICY_EXPLOIT), st.sampled_from([-1.0, 0.0])),
)
rows = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.sampled_from([None, 1, 2, 3]), decided, st.booleans()), min_size=1, max_size=12)
steps = st.lists(
    st.tuples(st.integers(0, 5), st.lists(st.tuples(st.integers(0, 11), st.sampled_from([0.0, 0.5, 1.0]), st.none() | rewards), max_size=10)), max_size=8
)
choices = st.one_of(
    st.just(Chosen()),
    st.sampled_from([Cause.POLICY_EXPLOIT, Cause.INFRASTRUCTURE]).map(lambda cause: Chosen(cause=cause)),
    st.integers(0, 2).map(lambda version: Chosen(environment_versions=[version], everything=True)),
    st.integers(0, 2).map(lambda version: Chosen(environment_versions=[version])),
    st.tuples(st.integers(0, 2), st.integers(0, 1)).map(lambda at: Chosen(environment_versions=[at[0]], tasks=[10 * at[0] + at[1]], everything=True)),
)


@pytest.fixture(scope="module")
def engine(module_database: str) -> Iterator[Engine]:
    engine = connect(module_database)
    with transaction(engine) as session:
        connection = driver(session)
        connection.execute("INSERT INTO environment_version (id, environment, version) SELECT n, 'e' || n, '1' FROM generate_series(0, 2) n")
        connection.execute(
            "INSERT INTO task (id, environment_version, task) SELECT 10 * n + m, n, 't' || m FROM generate_series(0, 2) n, generate_series(0, 1) m"
        )
    yield engine
    engine.dispose()


class World:
    """A project of its own with these rows and updates."""

    def __init__(self, engine: Engine, made: list[Row], told: list[Step]) -> None:
        self.engine, self.rows = engine, made
        with transaction(engine) as session:
            projects.create(session, name := uuid4().hex)
            self.project, _ = projects.by_name(session, name)
            self.keys: dict[str, UUID] = {row.id: uuid4() for row in made}
            for at, step in enumerate(told, 1):
                used = [Use(made[row % len(made)].id, weight, reward) for row, weight, reward in step.used]
                report(session, self.project, "r", Told(at, "", step.before, step.after, None, used, msgspec.json.encode(at)), share=2.0)
            for row in made:
                if row.posted:  # after it was used
                    self._post(session, row)
            found = driver(session).execute("SELECT id FROM run WHERE project = %s", (self.project,)).fetchone()
            self.run = found[0] if found else 0

    def _post(self, session: Any, row: Row) -> None:
        connection, key = driver(session), self.keys[row.id]
        connection.execute(
            "INSERT INTO trajectory (key, project, environment_version, task, group_id, segment, place, length, selection, line, sha256, id)"
            " VALUES (%s, %s, %s, %s, %s, 0, 0, 0, 0, 0, '', %s)",
            (key, self.project, row.environment, 10 * row.environment + row.task, row.group, row.id),
        )
        connection.execute(
            "INSERT INTO verdict (key, project, seq, reward_override, probability, policy, verdict, action, cause, open, final, retry, outcomes)"
            " VALUES (%s, %s, %s, %s, 0, 0, 3, %s, %s, false, true, false, '')",
            (key, self.project, None if row.action is Action.KEEP else 1, row.override, ACTION_CODE[row.action], CAUSE_CODE[row.cause]),
        )


def is_bad(row: Row, weight: float, reward: float | None, chosen: Chosen) -> bool:
    if not row.posted or weight == 0:
        return False
    if chosen.environment_versions is not None and row.environment not in chosen.environment_versions:
        return False
    if chosen.tasks is not None and 10 * row.environment + row.task not in chosen.tasks:
        return False
    if chosen.everything:
        return True
    if row.action is Action.KEEP or (chosen.cause is not None and row.cause is not chosen.cause):
        return False
    return not (row.override is not None and reward is not None and abs(reward - row.override) <= TOLERANCE)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows, steps, choices)
def test_every_count_is_that_of_a_count_by_hand(engine: Engine, made: list[Any], told: list[Any], chosen: Chosen) -> None:
    rows = [Row(f"t{at}", e, t, g, action, cause, override, posted) for at, (e, t, g, (action, cause, override), posted) in enumerate(made)]
    updates = [Step(before, before + 1, used) for before, used in told]
    world = World(engine, rows, updates)
    with transaction(engine) as session:
        found = account(session, world.project, world.run, chosen)
        listed = contamination.uses(session, world.project, world.run, chosen, (0, -1), 1000)
        unknown = contamination.unknown(session, world.run, (0, -1), 1000)
    by_hand = [[(rows[at % len(rows)], w, r) for at, w, r in step.used] for step in updates]
    bad = [[use for use in used if is_bad(*use, chosen)] for used in by_hand]
    tainted = inherits([_Pair(step.before, step.after) for step in updates], [bool(used) for used in bad])
    affected = [at for at in range(len(updates)) if bad[at] or tainted[at]]
    assert [one.update.number - 1 for one in found.affected] == affected
    for one, at in zip(found.affected, affected, strict=True):
        assert (one.bad.rows, one.bad.trajectories, one.inherited) == (len(bad[at]), len({row.id for row, _, _ in bad[at]}), tainted[at])
        assert one.bad.mass == mass(bad[at])
        assert one.update.mass == mass(by_hand[at])
        assert one.share == (mass(bad[at]) / mass(by_hand[at]) if mass(by_hand[at]) else 0.0)
        assert one.unknown == sum(not row.posted for row, _, _ in by_hand[at])
    every = [use for used in bad for use in used]
    groups = {row.group for row, _, _ in every} - {None}
    assert found.bad == (len(every), len({row.id for row, _, _ in every}), len(groups), mass(every))
    environments = {f"e{row.environment}": sum(other.environment == row.environment for other, _, _ in every) for row, _, _ in every}
    assert {one.environment: one.rows for one in found.environments} == environments
    assert [(one.number - 1, one.id) for one in listed] == [(at, row.id) for at, used in enumerate(bad) for row, _, _ in used]
    assert [one.id for one in unknown] == [row.id for used in by_hand for row, _, _ in used if not row.posted]


class _Pair(NamedTuple):
    policy_before: int
    policy_after: int


def mass(uses: list[tuple[Row, float, float | None]]) -> float:
    return math.fsum(abs(weight * reward) for _, weight, reward in uses if reward is not None)
