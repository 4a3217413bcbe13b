"""What the states that hold for all rest on: the evidence since they began, whose they are, and when they are to be looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

import msgspec
from sqlmodel import Session

from inspector.standing import Evidence, Now, Seen, Why, decide
from inspector.standing.evidence import counts_for_version
from inspector.standing.fleet import Hour
from inspector.standing.rules import DEFAULT, Rules
from inspector.store.session import driver
from inspector.store.states import WHOLE
from inspector.task import State

CLOCK = 9_007  # the advisory lock of those who quarantine environment versions without a person: they share an hour
TESTED_S = 86_400.0  # an environment version that was seen in this time counts as tested with the others


class How(StrEnum):
    """How something is counted."""

    NEW = "new"  # an episode for the first time
    LATE = "late"  # one that was counted turns out to be so
    WITHDRAWN = "withdrawn"  # one that was counted so is not so after all


class Event(NamedTuple):
    """What one audited episode says of its task."""

    task: int
    seen: Seen
    how: How = How.NEW


class Place(NamedTuple):
    """An environment version, or one of its tasks; ids of rows."""

    environment_version: int
    task: int  # WHOLE: the environment version itself


class Row(NamedTuple):
    """Where it stands, and why."""

    place: Place
    now: Now
    evidence: Evidence
    due_at: datetime | None


ORIGIN = datetime(2000, 1, 1, tzinfo=UTC)
_FIELDS = "s.environment_version, s.task, coalesce(t.state, v.state), s.why, s.since, s.held, s.body, s.due_at"
_OF = "standing s JOIN environment_version v ON v.id = s.environment_version LEFT JOIN task t ON t.id = s.task"


def _row(version: int, task: int, state: str, why: str, since: datetime, held: bool, body: bytes | None, due_at: datetime | None) -> Row:
    evidence = Evidence() if body is None else msgspec.msgpack.decode(body, type=Evidence)
    return Row(Place(version, task), Now(State(state), Why(why), since, held), evidence, due_at)


def of(session: Session, place: Place, *, lock: bool = False) -> Row | None:
    """What is known of one; None where nothing was ever held against it."""
    found = _read(session, [place], lock=lock)
    return found.get(place)


def _read(session: Session, places: Iterable[Place], *, lock: bool) -> dict[Place, Row]:
    wanted = sorted(set(places))
    query = f"SELECT {_FIELDS} FROM {_OF} JOIN unnest(%s::bigint[], %s::bigint[]) AS a(v, t) ON s.environment_version = a.v AND s.task = a.t"
    query += " ORDER BY s.environment_version, s.task" + (" FOR UPDATE OF s" if lock else "")
    rows = driver(session).execute(query, ([p.environment_version for p in wanted], [p.task for p in wanted])).fetchall()
    return {row.place: row for row in (_row(*each) for each in rows)}


def _make(session: Session, places: Iterable[Place]) -> None:
    wanted = sorted(set(places))
    driver(session).execute(
        "INSERT INTO standing (environment_version, task) SELECT * FROM unnest(%s::bigint[], %s::bigint[]) ON CONFLICT DO NOTHING",
        ([p.environment_version for p in wanted], [p.task for p in wanted]),
    )


# --- counting --------------------------------------------------------------------------------------------------------


def count(session: Session, events: Sequence[Event], rules: Rules = DEFAULT) -> bool:
    """Count what was audited; whether something is to be looked at now. Call it late in a transaction: whoever counts the same version waits."""
    if not events:
        return False
    versions = _versions(session, {event.task for event in events})
    telling = {Place(versions[e.task], e.task) for e in events if any(e.seen) or e.how is not How.NEW}
    wholes = {Place(version, WHOLE) for version in versions.values()}
    every = wholes | {Place(version, task) for task, version in versions.items()}
    known = _read(session, every, lock=True)
    if missing := (wholes | telling) - set(known):
        _make(session, missing)
        known = _read(session, every, lock=True)
    for event in events:
        version = versions[event.task]
        _count_one(known.get(Place(version, event.task)), known[Place(version, WHOLE)].evidence, event, rules)
    return _keep(session, list(known.values()), rules)


def _versions(session: Session, tasks: Iterable[int]) -> dict[int, int]:
    rows = driver(session).execute("SELECT id, environment_version FROM task WHERE id = ANY(%s)", (sorted(set(tasks)),))
    return dict(rows.fetchall())


def _count_one(task: Row | None, version: Evidence, event: Event, rules: Rules) -> None:
    if task is None:
        version.add(event.seen, rules)
        return
    exploited = task.evidence.exploits > 0
    _apply(task.evidence, event, rules)
    counted = event.how is How.WITHDRAWN or counts_for_version(task.evidence, event.seen, rules)
    changed = (task.evidence.exploits > 0) - exploited  # a version counts tasks, not episodes
    if counted:
        _apply(version, event._replace(seen=event.seen._replace(exploit=False)), rules)
    version.exploits = max(0, version.exploits + changed)


def _apply(evidence: Evidence, event: Event, rules: Rules) -> None:
    if event.how is How.NEW:
        evidence.add(event.seen, rules)
    elif event.how is How.LATE:
        evidence.add_late(event.seen, rules)
    else:
        evidence.withdraw(event.seen, rules)


def replayed(session: Session, version: int, task: int, *, clean: bool, rules: Rules = DEFAULT) -> bool:
    """Count a replay of a final state whose right reward is known; whether something is to be looked at now."""
    places = [Place(version, WHOLE), Place(version, task)]
    found = _read(session, places, lock=True)
    if Place(version, WHOLE) not in found:
        return False  # nothing was ever audited there
    for row in found.values():
        row.evidence.replayed(clean=clean)
    return _keep(session, list(found.values()), rules)


def _keep(session: Session, rows: Sequence[Row], rules: Rules) -> bool:
    """Write what was counted, and when it is to be looked at."""
    at = datetime.now(UTC)
    moving = [_is_due(session, row, at, rules) for row in rows]
    due = [at if moves else row.due_at for moves, row in zip(moving, rows, strict=True)]
    driver(session).execute(
        "UPDATE standing s SET body = a.body, score = a.score, due_at = a.due_at, seen_at = clock_timestamp()"
        " FROM unnest(%s::bigint[], %s::bigint[], %s::bytea[], %s::float8[], %s::timestamptz[]) AS a(v, t, body, score, due_at)"
        " WHERE s.environment_version = a.v AND s.task = a.t",
        (
            [row.place.environment_version for row in rows],
            [row.place.task for row in rows],
            [msgspec.msgpack.encode(row.evidence) for row in rows],
            [row.evidence.score for row in rows],
            due,
        ),
    )
    return any(moving)


def _is_due(session: Session, row: Row, at: datetime, rules: Rules) -> bool:
    if row.now.why is Why.FLEET and row.due_at is not None and row.due_at > at:
        return False  # a person was asked, and the hour is not over
    return decide(row.now, row.evidence, at, tasks=tasks(session, row.place, row.evidence), rules=rules) is not None


def tasks(session: Session, place: Place, evidence: Evidence) -> int | None:
    """How many an environment version has, where that may matter; None for a task."""
    if place.task != WHOLE:
        return None
    if evidence.exploits < DEFAULT.version_tasks:
        return 1
    row = driver(session).execute("SELECT count(*) FROM task WHERE environment_version = %s", (place.environment_version,)).fetchone()
    return max(1, int(row[0])) if row else 1


# --- looking at it ---------------------------------------------------------------------------------------------------


def due(session: Session, limit: int) -> list[Place]:
    """What is to be looked at, the longest due first."""
    rows = driver(session).execute("SELECT environment_version, task FROM standing WHERE due_at <= clock_timestamp() ORDER BY due_at LIMIT %s", (limit,))
    return [Place(*row) for row in rows.fetchall()]


def look_again(session: Session, place: Place, at: datetime | None) -> None:
    """It was looked at, and is to be looked at again then."""
    driver(session).execute("UPDATE standing SET due_at = %s WHERE environment_version = %s AND task = %s", (at, *place))


def began(session: Session, place: Place, why: Why, *, held: bool, fresh: bool, due_at: datetime | None = None) -> None:
    """A state begins; `fresh` where what was counted before says nothing of it."""
    driver(session).execute(
        "INSERT INTO standing (environment_version, task, why, held, due_at) VALUES (%s, %s, %s, %s, %s) ON CONFLICT (environment_version, task) DO UPDATE"
        " SET why = excluded.why, held = excluded.held, since = clock_timestamp(), due_at = excluded.due_at,"
        " body = CASE WHEN %s THEN NULL ELSE standing.body END, score = CASE WHEN %s THEN 0 ELSE standing.score END",
        (*place, why.value, held, due_at, fresh, fresh),
    )
    if fresh and place.task == WHOLE:
        _forget_exploits(session, place.environment_version)


def _forget_exploits(session: Session, version: int) -> None:
    """Of its tasks: the version counts them anew."""
    rows = driver(session).execute("SELECT environment_version, task, body FROM standing WHERE environment_version = %s AND task > 0 FOR UPDATE", (version,))
    told = [(place, task, msgspec.msgpack.decode(body, type=Evidence)) for place, task, body in rows.fetchall() if body is not None]
    changed = [(task, evidence) for _, task, evidence in told if evidence.exploits or evidence.told]
    for _, evidence in changed:
        evidence.exploits = evidence.told = 0
    driver(session).execute(
        "UPDATE standing s SET body = a.body FROM unnest(%s::bigint[], %s::bytea[]) AS a(t, body) WHERE s.environment_version = %s AND s.task = a.t",
        ([task for task, _ in changed], [msgspec.msgpack.encode(evidence) for _, evidence in changed], version),
    )


def held(session: Session, place: Place) -> bool:
    """Whether a person keeps it where it is."""
    row = driver(session).execute("SELECT held FROM standing WHERE environment_version = %s AND task = %s", place).fetchone()
    return row is not None and bool(row[0])


def scores(session: Session) -> list[float]:
    """Of every environment version that is tested and may still be quarantined."""
    rows = driver(session).execute(
        "SELECT s.score FROM standing s JOIN environment_version v ON v.id = s.environment_version WHERE s.task = 0 AND v.state IN ('active', 'watch')"
        " AND NOT s.held AND s.seen_at > clock_timestamp() - make_interval(secs => %s)",
        (TESTED_S,),
    )
    return [float(row[0]) for row in rows.fetchall()]


def hour(session: Session) -> tuple[Hour, Mapping[int, int]]:
    """The last hour of the installation, and how much each environment version posted in it. Those who ask for it act one after the other."""
    connection = driver(session)
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (CLOCK,))
    # keys are UUIDv7: their first 48 bits are the time of receipt in ms
    oldest = "lpad(to_hex((extract(epoch FROM clock_timestamp() - interval '1 hour') * 1000)::bigint), 12, '0') || '00000000000000000000'"
    posted = dict(connection.execute(f"SELECT environment_version, count(*) FROM trajectory WHERE key >= ({oldest})::uuid GROUP BY 1").fetchall())
    row = connection.execute(
        "SELECT count(*), coalesce(sum(share), 0) FROM state_change WHERE share IS NOT NULL AND changed_at > clock_timestamp() - interval '1 hour'"
    ).fetchone()
    moved, share = row if row is not None else (0, 0.0)
    return Hour(float(sum(posted.values())), int(moved), float(share)), posted
