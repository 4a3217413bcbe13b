"""What each update of a run was trained on, and what of it is bad by what stands now."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from sqlmodel import Session

from inspector.errors import Conflict
from inspector.store.codes import CAUSE_CODE, cause_of
from inspector.store.session import driver
from inspector.store.verdicts import Counted
from inspector.verdict import Cause, Verdict

OVERRIDE = 2  # the code of override_reward
TOLERANCE = 1e-6  # relative, of a reward that went through a trainer's floats
AS_DECIDED = "coalesce(abs(u.reward - {override}) <= " + f"{TOLERANCE}" + " * greatest(1, abs({override})), false)"
MASS = "abs(u.weight * coalesce(u.reward, 0))"


class Use(NamedTuple):
    """One trajectory of an update, by the producer's id."""

    id: str
    weight: float
    reward: float | None


class Told(NamedTuple):
    """What a trainer said of an update."""

    step: int
    attempt: str
    policy_before: int
    policy_after: int
    checkpoint: str | None
    used: Sequence[Use]
    body: bytes  # all of it, as it was posted


class Update(NamedTuple):
    """An update as it is known, with what confirmed exploits and verifier defects carried of it."""

    number: int
    step: int
    attempt: str
    policy_before: int
    policy_after: int
    checkpoint: str | None
    used: int
    mass: float
    known: float
    bad: float
    bad_rows: int
    sources: Sequence[str]
    heavy: bool


class Bad(NamedTuple):
    """What one cause in one environment version carried of an update."""

    number: int
    source: str
    mass: float
    rows: int


def add(session: Session, project: int, run: int, told: Told) -> int | None:
    """Keep what a trainer said; its number in the run, None where the same was said before. Raises Conflict for another body."""
    connection = driver(session)
    connection.execute("SELECT FROM run WHERE id = %s FOR NO KEY UPDATE", (run,))  # the numbers follow each other
    weighing = [use for use in told.used if use.weight]
    mass = math.fsum(abs(use.weight * use.reward) for use in weighing if use.reward is not None)
    row = connection.execute(
        "INSERT INTO run_step (run, number, step, attempt, policy_before, policy_after, checkpoint, used, mass, body)"
        " SELECT %(run)s, coalesce(max(number), 0) + 1, %(step)s, %(attempt)s, %(policy_before)s, %(policy_after)s, %(checkpoint)s,"
        " %(used)s, %(mass)s, %(body)s"
        " FROM run_step WHERE run = %(run)s ON CONFLICT (run, attempt, step) DO NOTHING RETURNING number",
        {"run": run, **told._asdict(), "used": len(weighing), "mass": mass},
    ).fetchone()
    if row is not None:
        _add_used(session, project, run, int(row[0]), told.used)
        return int(row[0])
    known = connection.execute("SELECT body FROM run_step WHERE run = %s AND attempt = %s AND step = %s", (run, told.attempt, told.step)).fetchone()
    if known is not None and bytes(known[0]) != told.body:
        raise Conflict(f"step {told.step} was posted already, with another body; who repeats it from a checkpoint names another attempt")
    return None


def _add_used(session: Session, project: int, run: int, number: int, used: Sequence[Use]) -> None:
    driver(session).execute(
        "INSERT INTO used (run, number, position, key, id, weight, reward)"
        " SELECT %s, %s, u.position - 1, t.key, CASE WHEN t.key IS NULL THEN u.id END, u.weight, u.reward"
        " FROM unnest(%s::text[], %s::float8[], %s::float8[]) WITH ORDINALITY AS u(id, weight, reward, position)"
        " LEFT JOIN trajectory t ON t.project = %s AND t.id = u.id",
        (run, number, [use.id for use in used], [use.weight for use in used], [use.reward for use in used], project),
    )


def recognise(session: Session, project: int, run: int, numbers: Sequence[int] | None = None) -> None:
    """Find what was posted after an update had used it; in all updates of the run, unless some are named."""
    driver(session).execute(
        "UPDATE used u SET key = t.key, id = NULL FROM trajectory t WHERE u.run = %(run)s AND u.key IS NULL AND t.project = %(project)s AND t.id = u.id"
        " AND (%(numbers)s::bigint[] IS NULL OR u.number = ANY(%(numbers)s))",
        {"run": run, "project": project, "numbers": None if numbers is None else list(numbers)},
    )


def doubt(session: Session, project: int, decided: Sequence[tuple[UUID, str]]) -> None:
    """Something was decided of these (key, producer's id): the updates that used them are to be looked at again."""
    connection = driver(session)
    keys = [key for key, _ in decided]
    connection.execute(
        "UPDATE used u SET key = d.key, id = NULL FROM unnest(%s::uuid[], %s::text[]) AS d(key, id), run r"
        " WHERE u.key IS NULL AND u.id = d.id AND r.id = u.run AND r.project = %s",
        (keys, [id_ for _, id_ in decided], project),
    )
    connection.execute("INSERT INTO doubt (project, run, number) SELECT DISTINCT %s::bigint, run, number FROM used WHERE key = ANY(%s)", (project, keys))


def doubted(session: Session, limit: int) -> dict[int, dict[int, list[int]]]:
    """Take what is in doubt: numbers of updates by project and run."""
    rows = driver(session).execute(
        "DELETE FROM doubt WHERE id IN (SELECT id FROM doubt ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED) RETURNING project, run, number", (limit,)
    )
    found: dict[int, dict[int, list[int]]] = {}
    for project, run, number in rows.fetchall():
        found.setdefault(project, {}).setdefault(run, []).append(number)
    return found


def any_doubt(session: Session) -> bool:
    """Whether an update is to be looked at again."""
    return driver(session).execute("SELECT FROM doubt LIMIT 1").fetchone() is not None


def bad(session: Session, run: int, numbers: Sequence[int]) -> list[Bad]:
    """What confirmed exploits and verifier defects carried of these updates, but for what was used with the reward that was decided for it."""
    exploit, verifier = CAUSE_CODE[Cause.POLICY_EXPLOIT], CAUSE_CODE[Cause.VERIFIER_DEFECT]
    rows = driver(session).execute(
        f"SELECT u.number, v.cause, e.environment, e.version, sum({MASS}), count(*) FROM used u JOIN verdict v ON v.key = u.key"
        " JOIN trajectory t ON t.key = u.key JOIN environment_version e ON e.id = t.environment_version"
        f" WHERE u.run = %s AND u.number = ANY(%s) AND u.weight <> 0 AND v.verdict = {Verdict.QUARANTINE:d}"
        f" AND (v.cause = {verifier} OR (v.cause = {exploit} AND (v.action = {OVERRIDE} OR v.by_person OR v.counted & {Counted.EXPLOIT:d} <> 0)))"
        f" AND NOT (v.action = {OVERRIDE} AND {AS_DECIDED.format(override='v.reward_override')}) GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4",
        (run, list(numbers)),
    )
    return [Bad(number, f"{cause_of(cause)} in {environment}@{version}", mass, rows) for number, cause, environment, version, mass, rows in rows.fetchall()]


def known(session: Session, run: int, numbers: Sequence[int]) -> dict[int, float]:
    """The mass of these updates that trajectories carried which were posted."""
    query = f"SELECT u.number, sum({MASS}) FROM used u WHERE u.run = %s AND u.number = ANY(%s) AND u.key IS NOT NULL GROUP BY 1"
    return dict(driver(session).execute(query, (run, list(numbers))).fetchall())


class Weighed(NamedTuple):
    """What is to be remembered of an update."""

    number: int
    known: float
    bad: float
    bad_rows: int
    sources: Sequence[str]
    heavy: bool


def weigh(session: Session, run: int, weighed: Iterable[Weighed]) -> None:
    """Remember what was found of updates."""
    with driver(session).cursor() as cursor:
        cursor.executemany(
            "UPDATE run_step SET known = %s, bad = %s, bad_rows = %s, sources = %s, heavy = %s WHERE run = %s AND number = %s",
            [(one.known, one.bad, one.bad_rows, list(one.sources), one.heavy, run, one.number) for one in weighed],
        )


def any_heavy(session: Session, run: int) -> bool:
    """Whether bad trajectories carried too much of any update."""
    return driver(session).execute("SELECT FROM run_step WHERE run = %s AND heavy LIMIT 1", (run,)).fetchone() is not None


def updates(session: Session, run: int) -> list[Update]:
    """All of a run, in the order in which they were told."""
    rows = driver(session).execute(f"SELECT {', '.join(Update._fields)} FROM run_step WHERE run = %s ORDER BY number", (run,))
    return [Update(*row) for row in rows.fetchall()]
