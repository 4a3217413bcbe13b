"""The decision log of each project: gapless numbers in commit order, and what stands at one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import quote
from uuid import UUID

import msgspec
from sqlmodel import Session

from inspector.errors import Gone, InspectorError
from inspector.store import used
from inspector.store.session import driver
from inspector.store.states import Standing
from inspector.task import audit_rate
from inspector.verdict import Action, Decision, Mode, Scope

CHANNEL = "inspector_feed"  # NOTIFY with a project's id wakes those who wait for its decisions


class Head(NamedTuple):
    """How far a project's log goes."""

    epoch: UUID
    seq: int
    first: int


class Numbered(NamedTuple):
    """A decision about to be logged, and the trajectory whose standing decision it becomes."""

    decision: Decision
    key: UUID | None


def head(session: Session, project: int) -> Head:
    """The newest number of a project's log."""
    row = driver(session).execute("SELECT epoch, last, first FROM feed WHERE project = %s", (project,)).fetchone()
    assert row is not None, f"project {project} was made without its feed"
    return Head(*row)


def heads(session: Session, projects: Iterable[int]) -> dict[int, Head]:
    """The newest number of several logs."""
    rows = driver(session).execute("SELECT project, epoch, last, first FROM feed WHERE project = ANY(%s)", (sorted(projects),)).fetchall()
    return {project: Head(epoch, last, first) for project, epoch, last, first in rows}


def notify(session: Session, projects: Iterable[int]) -> None:
    """Wake those who wait for these projects' decisions, at the commit. Only for acts of people: commits that notify wait for each other."""
    driver(session).execute("SELECT pg_notify(%s, %s)", (CHANNEL, ",".join(str(project) for project in sorted(projects))))


def begin_epoch(session: Session, project: int) -> None:
    """From now on no cursor that was given before is valid; followers start from the snapshot."""
    driver(session).execute("UPDATE feed SET epoch = gen_random_uuid() WHERE project = %s", (project,))


class Revoked(InspectorError):
    """A check was taken back after the judgement that is to be logged."""


def revocations(session: Session, project: int) -> int:
    """How often this project has taken checks back."""
    row = driver(session).execute("SELECT revocations FROM feed WHERE project = %s", (project,)).fetchone()
    return int(row[0]) if row else 0


def count_revocation(session: Session, project: int) -> None:
    """Checks were taken back. Until the commit nobody else logs anything here, and after it nobody what was judged before."""
    driver(session).execute("UPDATE feed SET revocations = revocations + 1 WHERE project = %s", (project,))


def hold(session: Session, project: int) -> None:
    """Until the transaction ends nobody else logs anything here, and all that was logged before is seen."""
    driver(session).execute("SELECT FROM feed WHERE project = %s FOR NO KEY UPDATE", (project,))


def append(session: Session, project: int, decisions: Sequence[Numbered], *, judged_after: int | None = None) -> int:
    """Number decisions and log them; the new head. Call it last in a transaction: the counter is held until the commit.

    Raises Revoked where they were `judged_after` fewer revocations than there are now. A sequence, an identity or a
    timestamp would let a reader that follows the log miss rows: numbers must become visible in their order.
    """
    if not decisions:
        return head(session, project).seq
    connection = driver(session)
    row = connection.execute("UPDATE feed SET last = last + %s WHERE project = %s RETURNING last, revocations", (len(decisions), project)).fetchone()
    assert row is not None, f"project {project} was made without its feed"
    if judged_after is not None and row[1] != judged_after:
        raise Revoked(f"a check was revoked in project {project}")
    last = int(row[0])
    first = last - len(decisions) + 1
    with connection.cursor().copy("COPY decision (project, seq, key, body) FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(["int8", "int8", "uuid", "bytea"])
        for seq, (decision, key) in enumerate(decisions, first):
            copy.write_row((project, seq, key, msgspec.json.encode(msgspec.structs.replace(decision, seq=seq))))
    standing = {key: seq for seq, (_, key) in enumerate(decisions, first) if key is not None}  # of several about one trajectory the last stands
    connection.execute(
        "UPDATE verdict v SET seq = logged.seq FROM unnest(%s::uuid[], %s::bigint[]) AS logged(key, seq) WHERE v.key = logged.key",
        (list(standing), list(standing.values())),
    )
    used.doubt(session, project, [(key, decision.trajectory or "") for decision, key in decisions if key is not None])
    return last


def of_state(standing: Standing, *, author: str, reason: str) -> Decision:
    """The entry that tells a project of the state of an environment version or a task."""
    return Decision(
        seq=0,
        scope=Scope.ENVIRONMENT_VERSION if standing.task is None else Scope.TASK,
        action=Action.SET_STATE,
        environment=standing.environment,
        version=standing.version,
        task=standing.task,
        state=standing.state,
        sampling_weight=standing.sampling_weight,
        audit_rate=audit_rate(standing.state),
        final=True,
        author=author,
        mode=Mode.ENFORCE,  # what it means is for each run's own mode to say
        reasons=(reason,),
        evidence=(where(standing),),
        decided_at=datetime.now(UTC),
    )


def where(standing: Standing) -> str:
    """Where it can be read why an environment version or a task stands as it does."""
    version = f"/v1/environments/{standing.environment}/versions/{quote(standing.version, safe='')}"
    return version if standing.task is None else f"{version}/tasks/{quote(standing.task)}"


def announce(session: Session, project: int, standing: Sequence[Standing], when: str) -> None:
    """Tell a project of states that held before they concerned it. Call it last in a transaction."""
    told = [of_state(state, author="policy", reason=f"{state.state.value} when this project {when}") for state in standing]
    append(session, project, [Numbered(decision, None) for decision in told])


def append_states(session: Session, decisions: Mapping[int, Sequence[Decision]]) -> dict[int, int]:
    """Log decisions in several projects' feeds, taken in the order of their ids so that two such acts cannot deadlock."""
    return {project: append(session, project, [Numbered(decision, None) for decision in decisions[project]]) for project in sorted(decisions)}


def page(session: Session, project: int, epoch: UUID | None, after: int, limit: int) -> tuple[Head, list[Decision]]:
    """The decisions behind a cursor. Raises Gone for a foreign epoch, for a cursor past the horizon or from the future."""
    now = head(session, project)
    if epoch is not None and epoch != now.epoch:
        raise Gone(f"epoch {epoch} is not this log's: it was restored or made anew as {now.epoch}", path="$.epoch")
    if after + 1 < now.first:
        raise Gone(f"decision {after + 1} is past the log's horizon, which begins at {now.first}", path="$.after")
    if after > now.seq:
        raise Gone(f"decision {after} was never logged: the log ends at {now.seq}", path="$.after")
    rows = driver(session).execute("SELECT seq, body FROM decision WHERE project = %s AND seq > %s ORDER BY seq LIMIT %s", (project, after, limit)).fetchall()
    if now.seq > after and [seq for seq, _ in rows] != list(range(after + 1, after + 1 + max(1, len(rows)))):
        raise Gone(f"decision {after + 1} went past the log's horizon while it was read", path="$.after")  # what still stands of it was left there
    return now, [decode(body) for _, body in rows]


def standing(session: Session, project: int, upto: int, after: int, limit: int) -> list[Decision]:
    """Decisions that still stand about single trajectories, and advice about runs, in the order of their numbers, none above `upto`."""
    rows = (
        driver(session)
        .execute(
            "(SELECT d.body, d.seq FROM verdict v JOIN decision d ON d.project = v.project AND d.seq = v.seq"
            " WHERE v.project = %(project)s AND v.seq > %(after)s AND v.seq <= %(upto)s AND v.action <> 0"
            " AND d.seq > %(after)s ORDER BY v.seq LIMIT %(limit)s)"  # said of both: a merge would begin at the log's first row
            " UNION ALL SELECT d.body, d.seq FROM rollback r JOIN decision d ON d.project = r.project AND d.seq = r.seq"
            " WHERE r.project = %(project)s AND r.open AND r.seq > %(after)s AND r.seq <= %(upto)s ORDER BY 2 LIMIT %(limit)s",
            {"project": project, "after": after, "upto": upto, "limit": limit},
        )
        .fetchall()
    )
    return [decode(row[0]) for row in rows]


def read(session: Session, project: int, seqs: Sequence[int]) -> dict[int, Decision]:
    """Logged decisions by number."""
    rows = driver(session).execute("SELECT seq, body FROM decision WHERE project = %s AND seq = ANY(%s)", (project, list(seqs))).fetchall()
    return {seq: decode(body) for seq, body in rows}


def history(session: Session, project: int, key: UUID) -> list[Decision]:
    """Every decision that was ever logged about a trajectory, oldest first."""
    rows = driver(session).execute("SELECT body FROM decision WHERE key = %s AND project = %s ORDER BY seq", (key, project)).fetchall()
    return [decode(row[0]) for row in rows]


def trim(session: Session, project: int, horizon: int) -> int:
    """Forget decisions older than the newest `horizon`, all at once; how many."""
    return forget(session, project, *move_horizon(session, project, horizon))


def move_horizon(session: Session, project: int, horizon: int) -> tuple[int, int]:
    """From now on cursors older than the newest `horizon` decisions are refused; (oldest number that is logged, first that is kept)."""
    connection = driver(session)
    row = connection.execute(
        "UPDATE feed SET first = last - %(horizon)s + 1 WHERE project = %(project)s AND last - %(horizon)s + 1 > first RETURNING first",
        {"horizon": horizon, "project": project},
    ).fetchone()
    if row is None:
        return 0, 0
    oldest = connection.execute("SELECT seq FROM decision WHERE project = %s ORDER BY project, seq LIMIT 1", (project,)).fetchone()
    return (oldest[0] if oldest else row[0]), row[0]


def forget(session: Session, project: int, begin: int, end: int) -> int:
    """Forget the decisions [begin, end); how many. What still stands is kept: the snapshot is made from it."""
    deleted = driver(session).execute(
        "DELETE FROM decision d WHERE project = %s AND seq >= %s AND seq < %s AND NOT EXISTS (SELECT FROM verdict v WHERE v.key = d.key AND v.seq = d.seq)"
        " AND NOT EXISTS (SELECT FROM rollback r WHERE r.project = d.project AND r.seq = d.seq AND r.open)",
        (project, begin, end),
    )
    return deleted.rowcount


def decode(body: bytes) -> Decision:
    """A decision as it was logged."""
    return msgspec.json.decode(body, type=Decision)
