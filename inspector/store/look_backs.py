"""Promises to tell earlier trajectories of the twins that a closed block brought; kept after its commit, and found by the sweep where a worker died."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlmodel import Session

from inspector.store.codes import CAUSE_CODE
from inspector.store.session import driver
from inspector.verdict import Cause


def add(session: Session, keys: Sequence[UUID]) -> int:
    """Promise it for these trajectories; the promise's id."""
    row = driver(session).execute("INSERT INTO look_back (keys) VALUES (%s) RETURNING id", (b"".join(key.bytes for key in keys),)).fetchone()
    assert row is not None
    return int(row[0])


def left(session: Session, older_s: float, limit: int = 20) -> list[int]:
    """Promises that were made so long ago that who made them will not keep them."""
    rows = driver(session).execute(
        "SELECT id FROM look_back WHERE promised_at < statement_timestamp() - make_interval(secs => %s) ORDER BY id LIMIT %s", (older_s, limit)
    )
    return [int(row[0]) for row in rows.fetchall()]


def take(session: Session, ids: Sequence[int]) -> list[UUID]:
    """The trajectories of these promises, which are kept with this transaction; none where another keeps them at this moment."""
    rows = driver(session).execute(
        "DELETE FROM look_back WHERE id IN (SELECT id FROM look_back WHERE id = ANY(%s) FOR UPDATE SKIP LOCKED) RETURNING keys", (list(ids),)
    )
    packed = b"".join(bytes(row[0]) for row in rows.fetchall())
    return [UUID(bytes=packed[at : at + 16]) for at in range(0, len(packed), 16)]


_ALIKE = {
    "content": "SELECT key FROM verdict v WHERE v.project = m.project AND v.content = m.number ORDER BY key LIMIT 8",
    "state": "(SELECT key FROM verdict v WHERE v.project = m.project AND v.state = m.number ORDER BY key LIMIT 4)"
    " UNION ALL (SELECT key FROM verdict v WHERE v.project = m.project AND v.state = m.number ORDER BY key DESC LIMIT 4)",
}


def disagreeing(session: Session, keys: Sequence[UUID]) -> list[tuple[int, UUID]]:
    """(project, key) of these trajectories, and of others of their task with the same steps or the same final state, where two rewards differ.

    And others that were paid for the final answer of an exploit.

    Of those with the same steps the eight oldest are looked at, of those with the same state the four oldest and the four newest.
    What a person judged and what is quarantined is left out.
    """
    return sorted({pair for column in _ALIKE for pair in _disagreeing(session, keys, column)} | set(_answered(session, keys)))


def _answered(session: Session, keys: Sequence[UUID]) -> list[tuple[int, UUID]]:
    """Others that were paid the same for the same final answer, where one of these is an exploit and they stand better."""
    rows = driver(session).execute(
        "WITH mine AS MATERIALIZED (SELECT DISTINCT v.project, v.answer, v.verdict, t.reward FROM verdict v JOIN trajectory t USING (key)"
        " WHERE v.key = ANY(%s) AND v.answer IS NOT NULL AND v.verdict >= 2 AND v.cause = %s)"
        " SELECT DISTINCT m.project, o.key FROM mine m JOIN verdict o ON o.project = m.project AND o.answer = m.answer AND o.verdict < 3"
        " JOIN trajectory t ON t.key = o.key WHERE o.verdict < m.verdict AND NOT o.by_person AND t.reward = m.reward ORDER BY 1, 2",
        (list(keys), CAUSE_CODE[Cause.POLICY_EXPLOIT]),
    )
    return [(int(project), key) for project, key in rows.fetchall()]


def _disagreeing(session: Session, keys: Sequence[UUID], column: str) -> list[tuple[int, UUID]]:
    rows = driver(session).execute(
        f"WITH mine AS MATERIALIZED (SELECT v.project, v.{column} AS number, v.key, t.task, t.reward FROM verdict v JOIN trajectory t USING (key)"
        f" WHERE v.key = ANY(%s) AND v.{column} IS NOT NULL),"
        f" near AS MATERIALIZED (SELECT m.*, s.key AS other FROM mine m CROSS JOIN LATERAL ({_ALIKE[column]}) s WHERE s.key <> m.key),"
        " pairs AS (SELECT n.project, n.key AS one, n.other FROM near n JOIN trajectory o ON o.key = n.other"
        " WHERE o.task + 0 = n.task AND o.reward IS DISTINCT FROM n.reward)"  # + 0: or the index of the task is walked
        " SELECT DISTINCT p.project, v.key FROM pairs p CROSS JOIN LATERAL unnest(ARRAY[p.one, p.other]) AS k(key) JOIN verdict v ON v.key = k.key"
        " WHERE v.verdict < 3 AND NOT v.by_person ORDER BY 1, 2",
        (list(keys),),
    )
    return [(int(project), key) for project, key in rows.fetchall()]
