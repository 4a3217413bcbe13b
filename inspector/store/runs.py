"""Training runs of a project: their mode, their steps, and checks whose enforcement is stopped in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlmodel import Session

from inspector.errors import Unknown
from inspector.store.session import driver
from inspector.verdict import Mode


class RunSummary(NamedTuple):
    """A run as it is listed."""

    id: int
    run: str
    trainer: str | None
    mode: Mode
    created_at: datetime
    stopped: list[str]  # checks whose enforcement is stopped here, as name@version


def ensure(session: Session, project: int, runs: Iterable[tuple[str, str | None]]) -> dict[str, tuple[int, Mode]]:
    """(id, mode) of (run, trainer) pairs, made in mode observe where they were not known."""
    trainers = dict(sorted(runs, key=lambda pair: pair[0]))
    if not trainers:
        return {}
    connection = driver(session)
    connection.execute(
        "INSERT INTO run (project, run, trainer) SELECT %s, * FROM unnest(%s::text[], %s::text[]) ON CONFLICT DO NOTHING",
        (project, list(trainers), list(trainers.values())),
    )
    rows = connection.execute("SELECT run, id, mode FROM run WHERE project = %s AND run = ANY(%s)", (project, list(trainers))).fetchall()
    return {run: (id_, Mode(mode)) for run, id_, mode in rows}


def find(session: Session, project: int, run: str) -> RunSummary:
    """One run; raises Unknown."""
    rows = _select(session, "project = %s AND run = %s", (project, run), 1)
    if not rows:
        raise Unknown("run", run)
    return rows[0]


def page(session: Session, project: int, before: int | None, limit: int) -> list[RunSummary]:
    """Runs, newest first, below the id `before`."""
    if before is None:
        return _select(session, "project >= %s AND project <= %s", (project, project), limit)  # a range: see trajectories._between
    return _select(session, "project >= %s AND (project, id) < (%s, %s)", (project, project, before), limit)


def set_mode(session: Session, project: int, run: str, mode: Mode) -> None:
    """Put a run in observe or enforce; a run that was not seen yet is made."""
    ensure(session, project, [(run, None)])
    driver(session).execute("UPDATE run SET mode = %s WHERE project = %s AND run = %s", (mode.value, project, run))


def modes(session: Session, runs: Iterable[int]) -> dict[int, Mode]:
    """The mode of each run id."""
    rows = driver(session).execute("SELECT id, mode FROM run WHERE id = ANY(%s)", (sorted(set(runs)),)).fetchall()
    return {id_: Mode(mode) for id_, mode in rows}


def names(session: Session, runs: Iterable[int]) -> dict[int, str]:
    """The producer's name of each run id."""
    return dict(driver(session).execute("SELECT id, run FROM run WHERE id = ANY(%s)", (sorted(set(runs)),)).fetchall())


def steps(session: Session, run: int, after: int, limit: int) -> Sequence[tuple[int, bytes]]:
    """(step, body) in order, after a step; of one that was repeated from a checkpoint, as it was told last."""
    query = "SELECT DISTINCT ON (step) step, body FROM run_step WHERE run = %s AND step > %s ORDER BY step, number DESC LIMIT %s"
    return [(step, bytes(body)) for step, body in driver(session).execute(query, (run, after, limit)).fetchall()]


def stopped(session: Session, runs: Iterable[int]) -> dict[int, set[int]]:
    """The check versions whose enforcement is stopped, by run."""
    found: dict[int, set[int]] = {}
    for run, check_version in driver(session).execute("SELECT run, check_version FROM stopped WHERE run = ANY(%s)", (sorted(set(runs)),)).fetchall():
        found.setdefault(run, set()).add(check_version)
    return found


def stop(session: Session, run: int, check_version: int, share: float) -> bool:
    """Stop a check's enforcement for a run; False when it was stopped already."""
    added = driver(session).execute("INSERT INTO stopped (run, check_version, share) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING", (run, check_version, share))
    return added.rowcount > 0


def shares(session: Session, run: int, window: int) -> tuple[int, dict[int, int]]:
    """(decided, {check version: decisions to exclude or override that rest on it}) over a run's newest `window` trajectories."""
    newest = (
        "WITH newest AS MATERIALIZED (SELECT key FROM trajectory WHERE run IS NOT NULL AND run >= %(run)s AND run <= %(run)s"
        " ORDER BY run DESC, key DESC LIMIT %(window)s),"  # a range: see trajectories._between
        " decided AS MATERIALIZED (SELECT v.key, v.action, v.verdict FROM newest JOIN verdict v USING (key))"
    )
    rows = (
        driver(session)
        .execute(
            newest
            + " SELECT NULL::bigint, count(*) FROM decided UNION ALL"
            + " SELECT f.check_version, count(DISTINCT f.key) FROM decided d JOIN finding f ON f.key = d.key AND f.deciding"
            + " WHERE d.action IN (1, 2) AND d.verdict = 3 GROUP BY 1",
            {"run": run, "window": window},
        )
        .fetchall()
    )
    return next(n for check, n in rows if check is None), {check: n for check, n in rows if check is not None}


def _select(session: Session, where: str, values: tuple[object, ...], limit: int) -> list[RunSummary]:
    rows = (
        driver(session)
        .execute(
            f"SELECT r.id, r.run, r.trainer, r.mode, r.created_at, ARRAY(SELECT c.check || '@' || c.version FROM stopped s"
            f" JOIN check_version c ON c.id = s.check_version WHERE s.run = r.id ORDER BY 1)"
            f" FROM run r WHERE {where} ORDER BY r.project DESC, r.id DESC LIMIT %s",
            (*values, limit),
        )
        .fetchall()
    )
    return [RunSummary(i, run, trainer, Mode(mode), created, names) for i, run, trainer, mode, created, names in rows]
