"""Which trajectories of a run's updates are bad, by any choice of what is bad; counted where they lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlmodel import Session

from inspector.store import verdicts
from inspector.store.codes import ACTIONS, CAUSE_CODE, cause_of
from inspector.store.session import driver
from inspector.store.used import AS_DECIDED, MASS, OVERRIDE
from inspector.verdict import Action, Cause, Verdict


class Chosen(NamedTuple):
    """What is bad: what is excluded or overridden and fits all that is named, or, by `everything`, all that was posted there."""

    cause: Cause | None = None
    checks: Sequence[int] | None = None  # ids of check versions that the decision rests on
    environment_versions: Sequence[int] | None = None
    tasks: Sequence[int] | None = None
    proved: bool = False  # only confirmed exploits and verifier defects
    everything: bool = False


class Counts(NamedTuple):
    """Of one update."""

    number: int
    rows: int
    trajectories: int
    mass: float


class InEnvironment(NamedTuple):
    """What of one environment version was used."""

    environment: str
    version: str
    rows: int
    trajectories: int
    groups: int
    updates: int
    mass: float
    first: int  # number of the first update


class Totals(NamedTuple):
    """Of a run."""

    rows: int
    trajectories: int
    groups: int
    mass: float


class BadUse(NamedTuple):
    """One use of a bad trajectory."""

    number: int
    position: int
    step: int
    key: UUID
    id: str
    group: str | None
    environment: str
    version: str
    task: str
    weight: float
    reward: float | None
    action: Action | None
    cause: Cause | None
    reward_override: float | None


class UnknownUse(NamedTuple):
    """One use of what was never posted."""

    number: int
    position: int
    step: int
    id: str
    weight: float
    reward: float | None


class Counted(NamedTuple):
    """Everything that is counted of a run."""

    updates: Mapping[int, Counts]  # by number; those that used nothing bad are not there
    environments: Sequence[InEnvironment]  # the largest mass first
    totals: Totals


def count(session: Session, project: int, run: int, chosen: Chosen) -> Counted:
    """By update, by environment version and in all, in one pass over what was used."""
    rows = (
        driver(session)
        .execute(
            f"{_used(chosen)}, counted AS (SELECT f.number, f.environment_version, count(*) AS rows, count(DISTINCT f.key) AS trajectories,"
            " count(DISTINCT f.group_id) AS groups, count(DISTINCT f.number) AS updates, coalesce(sum(f.mass), 0) AS mass, min(f.number) AS first"
            " FROM found f GROUP BY GROUPING SETS ((f.number), (f.environment_version), ()))"
            " SELECT c.number, e.environment, e.version, c.rows, c.trajectories, c.groups, c.updates, c.mass, c.first"
            " FROM counted c LEFT JOIN environment_version e ON e.id = c.environment_version ORDER BY c.mass DESC, e.id",
            _values(project, run, chosen),
        )
        .fetchall()
    )
    updates = {row[0]: Counts(row[0], row[3], row[4], row[7]) for row in rows if row[0] is not None}
    environments = [InEnvironment(*row[1:]) for row in rows if row[1] is not None]
    [totals] = [Totals(row[3], row[4], row[5], row[7]) for row in rows if row[0] is None and row[1] is None]
    return Counted(updates, environments, totals)


def uses(session: Session, project: int, run: int, chosen: Chosen, after: tuple[int, int], limit: int) -> list[BadUse]:
    """Each use of a bad trajectory, in the order of the updates, behind (number, position)."""
    rows = driver(session).execute(
        f"{_used(chosen, 'AND (u.number, u.position) > (%(number)s, %(position)s)')},"
        " paged AS MATERIALIZED (SELECT * FROM found ORDER BY number, position LIMIT %(limit)s)"
        " SELECT p.number, p.position, s.step, p.key, t.id, g.name, e.environment, e.version, k.task, p.weight, p.reward, v.action, v.cause, v.reward_override"
        " FROM paged p JOIN run_step s ON s.run = %(run)s AND s.number = p.number JOIN trajectory t ON t.key = p.key"
        " JOIN environment_version e ON e.id = t.environment_version JOIN task k ON k.id = t.task"
        " LEFT JOIN rollout_group g ON g.id = t.group_id LEFT JOIN verdict v ON v.key = p.key ORDER BY 1, 2",
        {**_values(project, run, chosen), "number": after[0], "position": after[1], "limit": limit},
    )
    return [BadUse._make((*row[:11], None if row[11] is None else ACTIONS[row[11]], cause_of(row[12]), row[13])) for row in rows.fetchall()]


def unknown(session: Session, run: int, after: tuple[int, int], limit: int) -> list[UnknownUse]:
    """What updates used that was never posted, in their order, behind (number, position)."""
    rows = driver(session).execute(
        "SELECT u.number, u.position, s.step, u.id, u.weight, u.reward FROM used u JOIN run_step s ON s.run = u.run AND s.number = u.number"
        " WHERE u.run = %s AND (u.number, u.position) > (%s, %s) AND u.key IS NULL ORDER BY u.number, u.position LIMIT %s",
        (run, *after, limit),
    )
    return [UnknownUse(*row) for row in rows.fetchall()]


def unknowns(session: Session, run: int) -> dict[int, int]:
    """How many trajectories of each update were never posted."""
    return dict(driver(session).execute("SELECT number, count(*) FROM used WHERE run = %s AND key IS NULL GROUP BY 1", (run,)).fetchall())


def _used(chosen: Chosen, more: str = "") -> str:
    """Common tables up to `found`: each use of what was chosen, unless it was used with the reward that was decided for it."""
    spared = "false" if chosen.everything else AS_DECIDED.format(override="b.instead")
    return (
        f"WITH bad AS MATERIALIZED ({_bad(chosen)}),"
        f" found AS MATERIALIZED (SELECT u.number, u.position, u.key, u.weight, u.reward, b.environment_version, b.group_id, {MASS} AS mass"
        " FROM used u JOIN bad b ON b.key = u.key"
        f" WHERE u.run = %(run)s AND u.weight <> 0 AND NOT {spared} {more})"
    )


def _bad(chosen: Chosen) -> str:
    placed = "".join(
        f" AND t.{column} = ANY(%({name})s)"
        for column, name, values in (("environment_version", "versions", chosen.environment_versions), ("task", "tasks", chosen.tasks))
        if values is not None
    )
    if chosen.everything:
        return f"SELECT t.key, t.environment_version, t.group_id FROM trajectory t WHERE t.project = %(project)s{placed}"
    rests = " AND EXISTS (SELECT FROM finding f WHERE f.key = v.key AND f.deciding AND f.check_version = ANY(%(checks)s))" if chosen.checks is not None else ""
    caused = " AND v.cause = %(cause)s" if chosen.cause is not None else ""
    return (
        f"SELECT t.key, t.environment_version, t.group_id, CASE WHEN v.action = {OVERRIDE} THEN v.reward_override END AS instead"
        f" FROM verdict v JOIN trajectory t ON t.key = v.key{placed}"
        f" WHERE v.project = %(project)s AND v.seq IS NOT NULL AND v.action IN (1, 2){caused}{rests}{_PROVED if chosen.proved else ''}"
    )


_PROVED = (
    f" AND v.verdict = {Verdict.QUARANTINE:d} AND (v.cause = {CAUSE_CODE[Cause.VERIFIER_DEFECT]} OR (v.cause = {CAUSE_CODE[Cause.POLICY_EXPLOIT]}"
    f" AND (v.action = {OVERRIDE} OR v.by_person OR v.counted & {verdicts.Counted.EXPLOIT:d} <> 0)))"
)


def _values(project: int, run: int, chosen: Chosen) -> Mapping[str, Any]:
    lists = {"checks": chosen.checks, "versions": chosen.environment_versions, "tasks": chosen.tasks}
    return {"project": project, "run": run, "cause": CAUSE_CODE[chosen.cause], **{name: list(values or ()) for name, values in lists.items()}}
