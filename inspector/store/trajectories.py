"""Rows of trajectories: where each line lies, what it is about, and the lists that people page through."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple
from uuid import UUID

from sqlmodel import Session

from inspector.errors import Unknown
from inspector.store.codes import ACTION_CODE, CAUSE_CODE
from inspector.store.session import driver
from inspector.store.stretches import Location
from inspector.verdict import Action, Cause, Mode


class NewTrajectory(NamedTuple):
    """One row as intake writes it; `place` and `line` say where in the segment."""

    key: UUID
    project: int
    environment_version: int
    task: int
    run: int | None
    group_id: int | None
    step: int | None
    policy_version: int | None
    reward: float | None
    segment: int
    place: int
    length: int
    selection: int
    line: int
    sha256: bytes
    id: str


_COLUMNS = ", ".join(NewTrajectory._fields)
_TYPES = ["uuid", *["int8"] * 7, "float8", "int8", "int8", "int4", "int4", "int2", "bytea", "text"]


class Subject(NamedTuple):
    """What an audit needs to know of a trajectory beside its line."""

    key: UUID
    project: int
    project_uuid: UUID
    environment_version: int
    task: int
    run: int | None
    group_id: int | None
    selection: int
    reward: float | None
    location: Location
    id: str


class Summary(NamedTuple):
    """One line of a list."""

    key: UUID
    id: str
    environment: str
    version: str
    task: str
    run: str | None
    group: str | None
    step: int | None
    policy_version: int | None
    reward: float | None
    length: int
    verdict: int | None
    action: int | None
    cause: int | None
    probability: float | None
    reward_override: float | None
    final: bool | None
    open: bool | None
    seq: int | None


def known(session: Session, project: int, ids: Sequence[str]) -> dict[str, tuple[UUID, bytes]]:
    """(key, sha256) of those producer ids that the project posted before."""
    rows = driver(session).execute("SELECT id, key, sha256 FROM trajectory WHERE project = %s AND id = ANY(%s)", (project, list(ids)), binary=True).fetchall()
    return {id_: (key, bytes(sha256)) for id_, key, sha256 in rows}


def add(session: Session, rows: Sequence[NewTrajectory]) -> None:
    """Write rows and the work that they ask for. Raises psycopg's UniqueViolation when one of the ids came in meanwhile."""
    with driver(session).cursor() as cursor:
        with cursor.copy(f"COPY trajectory ({_COLUMNS}) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(_TYPES)
            for row in sorted(rows, key=attrgetter("id")):  # two posts of the same ids wait for each other in one order: no deadlock
                copy.write_row(row)
        with cursor.copy("COPY work (project, key, length) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(["int8", "uuid", "int4"])
            for row in rows:
                copy.write_row((row.project, row.key, row.length))


def subjects(session: Session, keys: Sequence[UUID]) -> dict[UUID, Subject]:
    """What audits need, by key; one that was deleted is not there."""
    rows = (
        driver(session)
        .execute(
            "SELECT t.key, t.project, p.uuid, t.environment_version, t.task, t.run, t.group_id, t.selection, t.reward, t.segment, t.place, t.line, t.id"
            " FROM trajectory t JOIN project p ON p.id = t.project WHERE t.key = ANY(%s)",
            (list(keys),),
            binary=True,
        )
        .fetchall()
    )
    return {row[0]: Subject._make((*row[:9], Location(*row[9:12]), row[12])) for row in rows}


def find(session: Session, project: int, key: UUID) -> Subject:
    """One trajectory of this project; raises Unknown."""
    subject = subjects(session, [key]).get(key)
    if subject is None or subject.project != project:
        raise Unknown("trajectory", key)
    return subject


def modes(session: Session, keys: Sequence[UUID]) -> dict[UUID, Mode]:
    """The mode of each trajectory's run; those of no run are not there."""
    rows = driver(session).execute("SELECT t.key, r.mode FROM trajectory t JOIN run r ON r.id = t.run WHERE t.key = ANY(%s)", (list(keys),)).fetchall()
    return {key: Mode(mode) for key, mode in rows}


def set_reward(session: Session, key: UUID, reward: float) -> None:
    """The reward of a trajectory that was posted without one."""
    driver(session).execute("UPDATE trajectory SET reward = %s WHERE key = %s AND reward IS NULL", (reward, key))


def forget(session: Session, project: int, before: UUID, limit: int) -> int:
    """Delete rows with smaller keys, and all that was said of them but reviews, at most `limit`; how many.

    What waits for its audit, or for late checks, stays.
    """
    deleted = driver(session).execute(
        "WITH old AS MATERIALIZED (SELECT key FROM trajectory t WHERE (project, key) > (%(project)s, '00000000-0000-0000-0000-000000000000'::uuid)"
        " AND (project, key) < (%(project)s, %(before)s) AND NOT EXISTS (SELECT FROM work w WHERE w.key = t.key)"
        " AND NOT EXISTS (SELECT FROM work w WHERE w.group_id = t.group_id AND w.lane = 1)"
        " ORDER BY project, key LIMIT %(limit)s FOR UPDATE),"
        " verdicts AS (DELETE FROM verdict v USING old WHERE v.key = old.key), findings AS (DELETE FROM finding f USING old WHERE f.key = old.key),"
        " spots AS (DELETE FROM spot_check s USING old WHERE s.key = old.key),"
        " patches AS (DELETE FROM patch p USING old WHERE p.key = old.key),"
        " replays AS (DELETE FROM replay r USING old WHERE r.key = old.key) DELETE FROM trajectory t USING old WHERE t.key = old.key",
        {"project": project, "before": before, "limit": limit},
    )
    return deleted.rowcount


def any_before(session: Session, project: int, before: UUID) -> bool:
    """Whether the project has a row with a smaller key."""
    query = (
        "SELECT FROM trajectory WHERE (project, key) > (%s, '00000000-0000-0000-0000-000000000000'::uuid)"
        " AND (project, key) < (%s, %s) ORDER BY project, key LIMIT 1"
    )
    return driver(session).execute(query, (project, project, before)).fetchone() is not None


def key_of(session: Session, project: int, id_: str) -> UUID:
    """The key of a producer's id; raises Unknown."""
    found = known(session, project, [id_])
    if id_ not in found:
        raise Unknown("trajectory", id_)
    return found[id_][0]


def twins(session: Session, project: int, contents: Sequence[int]) -> dict[int, list[tuple[str, float | None, int, UUID]]]:
    """By content number, which is of one task: (id, reward, task, key) of audited trajectories with the same steps, at most 8 of each, oldest first."""
    alike = "SELECT key FROM verdict v WHERE v.project = %s AND v.content = a.number ORDER BY key LIMIT 8"
    return _alike(session, alike, (project,), contents)


def same_state(session: Session, project: int, states: Sequence[int]) -> dict[int, list[tuple[str, float | None, int, UUID]]]:
    """By state number: (id, reward, task, key) of audited trajectories that left the same, the four oldest and the four newest of each."""
    end = "(SELECT key FROM verdict v WHERE v.project = %s AND v.state = a.number ORDER BY key {} LIMIT 4)"
    return _alike(session, f"{end.format('')} UNION ALL {end.format('DESC')}", (project, project), states)


def _alike(session: Session, alike: str, given: Sequence[int], numbers: Sequence[int]) -> dict[int, list[tuple[str, float | None, int, UUID]]]:
    query = (
        f"SELECT a.number, t.id, t.reward, t.task, t.key FROM unnest(%s::bigint[]) AS a(number) CROSS JOIN LATERAL ({alike}) v JOIN trajectory t USING (key)"
    )
    found: dict[int, list[tuple[str, float | None, int, UUID]]] = {}
    for number, id_, reward, task, key in driver(session).execute(query, (sorted(set(numbers)), *given)).fetchall():
        found.setdefault(number, []).append((id_, reward, task, key))
    return found


def newest_rewards(session: Session, project: int, tasks: Sequence[int], most: int) -> dict[int, list[float]]:
    """By task: the rewards of the newest scored trajectories of a project, the oldest first, without what was excluded for no fault of the policy."""
    rows = driver(session).execute(
        "SELECT a.task, n.reward FROM unnest(%(tasks)s::bigint[]) AS a(task) CROSS JOIN LATERAL (SELECT key, reward FROM (SELECT t.key, t.reward, v.action,"
        " v.cause FROM trajectory t LEFT JOIN verdict v ON v.key = t.key WHERE (t.task, t.project) >= (a.task, %(project)s) AND t.task <= a.task"
        " AND t.project <= %(project)s ORDER BY t.task DESC, t.project DESC, t.key DESC LIMIT %(scan)s) s"
        " WHERE reward IS NOT NULL AND NOT coalesce(action = %(exclude)s AND cause <> %(exploit)s, false) LIMIT %(most)s) n ORDER BY a.task, n.key",
        {
            "tasks": sorted(set(tasks)),
            "project": project,
            "scan": 2 * most,
            "most": most,
            "exclude": ACTION_CODE[Action.EXCLUDE],
            "exploit": CAUSE_CODE[Cause.POLICY_EXPLOIT],
        },
    )
    found: dict[int, list[float]] = {}
    for task, reward in rows.fetchall():
        found.setdefault(task, []).append(reward)
    return found


class Filter(NamedTuple):
    """What a list is narrowed to; ids of rows, already looked up."""

    environment_version: int | None = None
    task: int | None = None
    run: int | None = None
    verdict: int | None = None


SCAN = 2_000  # rows that one page may look at when a filter has no index of its own

_LINE = (
    "SELECT t.key, t.id, e.environment, e.version, k.task, r.run, g.name, t.step, t.policy_version, t.reward, t.length,"
    " v.verdict, v.action, v.cause, v.probability, v.reward_override, v.final, v.open, v.seq"
)
_OF_PICKED = (
    " FROM picked JOIN trajectory t USING (key) JOIN environment_version e ON e.id = t.environment_version JOIN task k ON k.id = t.task"
    " LEFT JOIN run r ON r.id = t.run LEFT JOIN rollout_group g ON g.id = t.group_id LEFT JOIN verdict v ON v.key = t.key"
)
_SUMMARY = _LINE + _OF_PICKED


class Page(NamedTuple):
    """A part of a list."""

    rows: list[Summary]
    scanned: int  # rows that were looked at, `rows` among them
    last: UUID | None  # the cursor of the next page; None at the end


def page(session: Session, project: int, narrowed: Filter, before: UUID | None, limit: int) -> Page:
    """One keyset page, newest first.

    One indexed filter bounds the scan by itself; further ones are tested on at most `SCAN` rows a call, so a page may
    hold fewer rows than asked for and still have a next one.
    """
    scanned = _scanned(narrowed)
    wanted = " AND ".join(scanned.tests) or "true"
    scan = SCAN if scanned.tests else limit + 1  # the index alone decides: nothing is looked at that is not shown, but for one to know whether more comes
    order = ", ".join(f"{column} DESC" for column in (*scanned.bounds, "key"))
    # All in one statement: what arrives between two of them would move the window, and rows would be shown twice. The last
    # row that was looked at comes too, to say how far the scan went.
    window = f"SELECT * FROM {scanned.source} s WHERE {_between(scanned.bounds, before)} ORDER BY {order} LIMIT %(scan)s"
    numbered = f"SELECT *, row_number() OVER w AS nr, lead(key) OVER w IS NULL AS last FROM ({window}) s WINDOW w AS (ORDER BY {order})"
    query = (
        f"WITH picked AS MATERIALIZED (SELECT key, nr, {wanted} AS matches FROM ({numbered}) s WHERE {wanted} OR last ORDER BY {order} LIMIT %(limit)s + 1)"
        f" {_LINE}, picked.nr, picked.matches{_OF_PICKED} ORDER BY t.key DESC"
    )
    values = {"project": project, "before": before, "scan": scan, "limit": limit, **narrowed._asdict()}
    found = driver(session).execute(query, values).fetchall()
    if not found:
        return Page([], 0, None)
    matching = [row for row in found if row[-1]]
    end = matching[limit - 1] if len(matching) >= limit else found[-1]
    more = len(matching) > limit or found[-1][-2] == scan
    return Page([Summary(*row[:-2]) for row in matching[:limit]], end[-2], end[0] if more else None)


def summaries(session: Session, project: int, keys: Iterable[UUID]) -> list[Summary]:
    """The list lines of these keys, in their order; those of other projects are left out."""
    wanted = list(keys)
    rows = (
        driver(session)
        .execute(
            "WITH picked AS (SELECT key, nr FROM unnest(%s::uuid[]) WITH ORDINALITY AS u(key, nr)) " + _SUMMARY + " WHERE t.project = %s ORDER BY nr",
            (wanted, project),
        )
        .fetchall()
    )
    return [Summary(*row) for row in rows]


class _Scanned(NamedTuple):
    """How a list finds its rows, called `s` in conditions."""

    source: str
    bounds: tuple[str, ...]  # the columns of the index before `key`, each equal to the value of its name
    tests: list[str]  # of each row


_ROWS = "(SELECT key, project, environment_version, task, run FROM trajectory)"
_OF_RUN = "(SELECT key, project, environment_version, task, run FROM trajectory WHERE run IS NOT NULL AND project = %(project)s)"  # as the partial index has it
_WORST = "(SELECT key, project, verdict FROM verdict WHERE verdict >= 2)"  # likewise


def _scanned(narrowed: Filter) -> _Scanned:
    given = [name for name in ("task", "run", "environment_version") if getattr(narrowed, name) is not None]
    if not given and narrowed.verdict is not None and narrowed.verdict >= 2:
        return _Scanned(_WORST, ("project", "verdict"), [])
    tests = [f"s.{name} = %({name})s" for name in given[1:]]
    if narrowed.verdict is not None:
        tests.append("coalesce((SELECT v.verdict FROM verdict v WHERE v.key = s.key), 0) = %(verdict)s")
    if given and given[0] == "run":
        return _Scanned(_OF_RUN, ("run",), tests)
    return _Scanned(_ROWS, (*given[:1], "project"), tests)


def _between(bounds: tuple[str, ...], before: UUID | None) -> str:
    """The rows where the columns have their values, older than `before`.

    As a range, not as equalities: knowing that a column is constant, the planner likes to walk all keys backwards and to
    throw away what is another project's, which is everything where this one has been quiet for a while.
    """
    columns, values = ", ".join(bounds), ", ".join(f"%({name})s" for name in bounds)
    end = f"({columns}) <= ({values})" if before is None else f"({columns}, key) < ({values}, %(before)s)"
    return f"({columns}) >= ({values}) AND {end}"
