"""The list of what waits for a person, worst first, in pages of a partial index."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from sqlmodel import Session

from inspector.store.session import driver
from inspector.verdict import Verdict


class Cursor(NamedTuple):
    """Where a triage page ended."""

    verdict: int
    probability: float
    key: UUID


def page(session: Session, project: int, after: Cursor | None, limit: int) -> list[Cursor]:
    """What waits for a person, worst first; one keyset page of the partial index."""
    where = "" if after is None else " AND (verdict, probability, key) < (%s, %s, %s)"
    rows = (
        driver(session)
        .execute(
            f"SELECT verdict, probability, key FROM verdict WHERE project = %s AND open{where} ORDER BY verdict DESC, probability DESC, key DESC LIMIT %s",
            (project, *(after or ()), limit),
        )
        .fetchall()
    )
    return [Cursor(*r) for r in rows]


class Narrowing(NamedTuple):
    """What the list is narrowed to; `environment_version` and `run` are ids of rows."""

    verdict: int | None = None
    cause: int | None = None
    environment_version: int | None = None
    run: int | None = None

    @property
    def tests(self) -> str:
        """Conditions on a verdict `v` and its trajectory `t`, empty where there are none."""
        tables = {"verdict": "v", "cause": "v", "environment_version": "t", "run": "t"}
        return " AND ".join(f"{table}.{name} = %({name})s" for name, table in tables.items() if getattr(self, name) is not None)


class Places(NamedTuple):
    """A part of the narrowed list."""

    places: list[Cursor]
    scanned: int
    last: Cursor | None  # where the next page begins; None at the end


SCAN = 2_000  # rows of the list that one narrowed page may look at


def narrowed(session: Session, project: int, by: Narrowing, after: Cursor | None, limit: int) -> Places:
    """What waits for a person and passes the filter, worst first, among at most `SCAN` rows behind the cursor."""
    behind = "" if after is None else " AND (verdict, probability, key) < (%(after_verdict)s, %(after_probability)s, %(after_key)s)"
    order = "ORDER BY verdict DESC, probability DESC, key DESC"
    window = f"SELECT verdict, probability, key, cause FROM verdict WHERE project = %(project)s AND open{behind} {order} LIMIT %(scan)s"
    numbered = f"SELECT *, row_number() OVER w AS nr, lead(key) OVER w IS NULL AS last FROM ({window}) s WINDOW w AS ({order})"
    its = "SELECT environment_version, run FROM trajectory WHERE key = v.key OFFSET 0"  # by its key, however many rows the planner takes the window for
    matches = f"coalesce({by.tests or 'true'}, false) AS matches"
    query = (
        f"WITH looked_at AS MATERIALIZED (SELECT v.*, {matches} FROM ({numbered}) v CROSS JOIN LATERAL ({its}) t)"
        " SELECT verdict, probability, key, nr, matches FROM looked_at WHERE matches OR last ORDER BY nr LIMIT %(limit)s + 1"
    )
    values = {"project": project, "scan": SCAN, "limit": limit, **by._asdict()}
    if after is not None:
        values |= {"after_verdict": after.verdict, "after_probability": after.probability, "after_key": after.key}
    found = driver(session).execute(query, values).fetchall()
    if not found:
        return Places([], 0, None)
    matching = [row for row in found if row[4]]
    end = matching[limit - 1] if len(matching) >= limit else found[-1]
    more = len(matching) > limit or found[-1][3] == SCAN
    return Places([Cursor(*row[:3]) for row in matching[:limit]], end[3], Cursor(*end[:3]) if more else None)


def counts(session: Session, project: int, most: int) -> dict[str, int]:
    """How many wait for a person, by verdict; of each no more than `most` are counted."""
    worst = sorted((v for v in Verdict if v >= Verdict.FLAG), reverse=True)
    one = "SELECT count(*) FROM (SELECT 1 FROM verdict WHERE project = %s AND open AND verdict = %s LIMIT %s) s"
    return {v.word: driver(session).execute(one, (project, int(v), most)).fetchone()[0] for v in worst}  # type: ignore[index]  # an aggregate has a row
