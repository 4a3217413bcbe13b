"""What of a run was out and may be learnt from after all."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from sqlmodel import Session

from inspector.store.codes import ACTIONS, CAUSE_CODE
from inspector.store.session import driver
from inspector.verdict import Action, Cause


class Recycled(NamedTuple):
    """A trajectory that may be taken up again."""

    seq: int  # of the decision that gave it back
    key: UUID
    id: str
    group: str | None
    environment: str
    version: str
    task: str
    posted: float | None  # the reward as it was posted
    reward: float | None  # the one to use
    policy_version: int | None  # that made it
    action: Action


def newest_version(session: Session, run: int) -> int | None:
    """The policy version that a run's last update made; where none was told, the newest that made a trajectory."""
    row = (
        driver(session)
        .execute(
            "SELECT coalesce((SELECT policy_after FROM run_step WHERE run = %(run)s ORDER BY number DESC LIMIT 1),"
            " (SELECT max(policy_version) FROM (SELECT policy_version FROM trajectory WHERE run = %(run)s ORDER BY run, key DESC LIMIT 1000) newest))",
            {"run": run},
        )
        .fetchone()
    )
    return None if row is None or row[0] is None else int(row[0])


def page(session: Session, project: int, run: int, after: int, oldest: int | None, limit: int) -> list[Recycled]:
    """In the order in which they were given back, behind the decision `after`: scored, not used by any update of the run, and no version before `oldest`."""
    rows = driver(session).execute(
        "SELECT v.seq, t.key, t.id, g.name, e.environment, e.version, k.task, t.reward, coalesce(v.reward_override, t.reward), t.policy_version, v.action"
        " FROM verdict v JOIN trajectory t ON t.key = v.key JOIN environment_version e ON e.id = t.environment_version JOIN task k ON k.id = t.task"
        " LEFT JOIN rollout_group g ON g.id = t.group_id"
        " WHERE v.project = %(project)s AND v.seq > %(after)s AND v.seq IS NOT NULL AND t.run = %(run)s"
        " AND (v.action = 0 OR (v.action = 2 AND v.cause = %(cause)s)) AND coalesce(v.reward_override, t.reward) IS NOT NULL"
        " AND (%(oldest)s::bigint IS NULL OR t.policy_version >= %(oldest)s)"
        " AND NOT EXISTS (SELECT FROM used u WHERE u.key = t.key AND u.run = t.run AND u.weight <> 0)"
        " ORDER BY v.seq LIMIT %(limit)s",
        {"project": project, "run": run, "after": after, "oldest": oldest, "limit": limit, "cause": CAUSE_CODE[Cause.VERIFIER_DEFECT]},
    )
    return [Recycled._make((*row, ACTIONS[action])) for *row, action in rows.fetchall()]
