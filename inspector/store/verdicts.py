"""Verdicts with their findings and coverage, and what stands by them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import IntFlag
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from sqlmodel import Session

from inspector.errors import Unknown
from inspector.store.codes import ACTION_CODE, ACTIONS, CAUSE_CODE, cause_of
from inspector.store.session import driver
from inspector.verdict import Action, Cause, Finding, Judgement, Mode, Outcome, Verdict


class Counted(IntFlag):
    """What a trajectory was counted as. The numbers are stored."""

    HONEST = 1  # its reward is in the honest mean
    EXPLOIT = 2  # it is a confirmed exploit of its task that the policy may still win by
    DEFECT = 4  # of the verifier or the environment
    NEUTRALISED = 8  # a confirmed exploit that loses by itself
    BROKEN = 16  # by infrastructure
    EPISODE = 32  # an audited episode, once
    SAMPLED = 64  # others of its kind are not looked at


class NewVerdict(NamedTuple):
    """One row as an audit writes it."""

    key: UUID
    project: int
    content: int | None
    reward_override: float | None
    probability: float
    policy: int
    verdict: int
    action: int
    cause: int | None
    open: bool
    final: bool
    retry: bool
    by_person: bool
    seq: int | None
    outcomes: bytes
    notes: bytes | None
    counted: int = 0
    state: int | None = None
    answer: int | None = None


class NewFinding(NamedTuple):
    """One finding of a trajectory; `deciding` where the action rests on it."""

    key: UUID
    position: int
    check_version: int
    deciding: bool
    body: bytes


class Stored(NamedTuple):
    """What stands for a trajectory."""

    key: UUID
    verdict: Verdict
    action: Action
    cause: Cause | None
    probability: float
    reward_override: float | None
    retry: bool
    final: bool
    open: bool
    by_person: bool
    seq: int | None
    policy: int
    outcomes: tuple[Outcome, ...]
    notes: dict[int, str]


REPLACED = 3  # looks for a verdict that an audit may put another in the place of while one waits for it
_COLUMNS = ", ".join(NewVerdict._fields)
_TYPES = [
    "uuid",
    "int8",
    "int8",
    "float8",
    "float8",
    "int4",
    "int2",
    "int2",
    "int2",
    "bool",
    "bool",
    "bool",
    "bool",
    "int8",
    "bytea",
    "bytea",
    "int2",
    "int8",
    "int8",
]


def row(key: UUID, project: int, content: int, policy: int, judged: Judgement, outcomes: bytes, notes: dict[int, str], *, final: bool) -> NewVerdict:
    """The row of a judgement that the policy just made."""
    return NewVerdict(
        key=key,
        project=project,
        content=content,
        reward_override=judged.reward_override,
        probability=judged.probability,
        policy=policy,
        verdict=judged.verdict,
        action=ACTION_CODE[judged.action],
        cause=CAUSE_CODE[judged.cause],
        open=judged.verdict >= Verdict.FLAG,
        final=final,
        retry=judged.retry,
        by_person=False,
        seq=None,
        outcomes=outcomes,
        notes=msgspec.msgpack.encode(notes) if notes else None,
    )


def finding_row(key: UUID, position: int, check_version: int, finding: Finding, *, deciding: bool) -> NewFinding:
    """The row of a finding."""
    return NewFinding(key, position, check_version, deciding, msgspec.json.encode(finding))


def replace(session: Session, keys: Sequence[UUID]) -> dict[UUID, NewVerdict]:
    """Take away what an earlier audit said of these trajectories; what it said, by key. Most have no earlier one."""
    connection = driver(session)
    rows = connection.execute(f"DELETE FROM verdict WHERE key = ANY(%s) RETURNING {_COLUMNS}", (list(keys),), binary=True).fetchall()
    if rows:
        connection.execute("DELETE FROM finding WHERE key = ANY(%s)", ([r[0] for r in rows],))
    return {r[0]: NewVerdict(*r) for r in rows}


class Assessed(NamedTuple):
    """What the checks said of a trajectory, as it is stored."""

    outcomes: bytes
    notes: dict[int, str]
    findings: tuple[Finding, ...]


def assessed(session: Session, keys: Sequence[UUID]) -> dict[UUID, Assessed]:
    """What the checks said of these trajectories; those without a verdict yet are not there."""
    connection = driver(session)
    rows = connection.execute("SELECT key, outcomes, notes FROM verdict WHERE key = ANY(%s)", (list(keys),)).fetchall()
    found = connection.execute("SELECT key, body FROM finding WHERE key = ANY(%s) ORDER BY key, position", ([row[0] for row in rows],)).fetchall()
    bodies: dict[UUID, list[Finding]] = {}
    for key, body in found:
        bodies.setdefault(key, []).append(msgspec.json.decode(body, type=Finding))
    return {key: Assessed(bytes(outcomes), _notes(notes), tuple(bodies.get(key, ()))) for key, outcomes, notes in rows}


def take(session: Session, keys: Sequence[UUID]) -> dict[UUID, tuple[NewVerdict, tuple[Finding, ...]]]:
    """Take away what stands for these trajectories, with its findings; whoever holds one of them at this moment is waited for."""
    connection = driver(session)
    rows = connection.execute(f"DELETE FROM verdict WHERE key = ANY(%s) RETURNING {_COLUMNS}", (list(keys),), binary=True).fetchall()
    found = connection.execute("DELETE FROM finding WHERE key = ANY(%s) RETURNING key, position, body", ([r[0] for r in rows],)).fetchall()
    bodies: dict[UUID, list[Finding]] = {}
    for key, _, body in sorted(found, key=lambda one: one[1]):
        bodies.setdefault(key, []).append(msgspec.json.decode(body, type=Finding))
    return {r[0]: (NewVerdict(*r), tuple(bodies.get(r[0], ()))) for r in rows}


def add(session: Session, verdicts: Sequence[NewVerdict], findings: Sequence[NewFinding]) -> None:
    """Write what an audit said."""
    with driver(session).cursor() as cursor:
        with cursor.copy(f"COPY verdict ({_COLUMNS}) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(_TYPES)
            for verdict in verdicts:
                copy.write_row(verdict)
        if findings:
            with cursor.copy("COPY finding (key, position, check_version, deciding, body) FROM STDIN (FORMAT BINARY)") as copy:
                copy.set_types(["uuid", "int2", "int8", "bool", "bytea"])
                for finding in findings:
                    copy.write_row(finding)


_STORED = "SELECT key, verdict, action, cause, probability, reward_override, retry, final, open, by_person, seq, policy, outcomes, notes FROM verdict WHERE "


def stored(session: Session, project: int, keys: Sequence[UUID]) -> dict[UUID, Stored]:
    """What stands for these trajectories; those without a verdict yet are not there."""
    rows = driver(session).execute(_STORED + "key = ANY(%s) AND project = %s", (list(keys), project)).fetchall()
    return {r[0]: _stored(r) for r in rows}


class Ruled(NamedTuple):
    """What a trainer is told of a trajectory: neither verdict nor probability, which may rest on the agent's reasoning."""

    action: Action
    final: bool
    reward_override: float | None
    cause: Cause | None
    retry: bool
    mode: Mode  # as it was decided, or of its run where it was never logged
    enforced: bool
    seq: int | None
    until: datetime | None = None  # of a hold


def rulings(session: Session, project: int, keys: Sequence[UUID]) -> dict[UUID, Ruled]:
    """What is decided of these trajectories, kept ones included; those without a verdict yet are not there."""
    rows = (
        driver(session)
        .execute(
            "SELECT v.key, v.action, v.final, v.reward_override, v.cause, v.retry, coalesce(r.mode, 'observe'), v.seq, d.body FROM verdict v"
            " JOIN trajectory t ON t.key = v.key LEFT JOIN run r ON r.id = t.run LEFT JOIN decision d ON d.project = v.project AND d.seq = v.seq"
            " WHERE v.key = ANY(%s) AND v.project = %s",
            (list(keys), project),
        )
        .fetchall()
    )
    return {row[0]: _ruled(*row[1:]) for row in rows}


class _Logged(msgspec.Struct):
    mode: Mode = Mode.OBSERVE
    enforced: bool = True
    until: datetime | None = None


def _ruled(action: int, final: bool, override: float | None, cause: int | None, retry: bool, mode: str, seq: int | None, body: bytes | None) -> Ruled:
    logged = msgspec.json.decode(body, type=_Logged) if body is not None else _Logged(Mode(mode))
    return Ruled(ACTIONS[action], final, override, cause_of(cause), retry, logged.mode, logged.enforced, seq, logged.until)


def lock(session: Session, project: int, key: UUID) -> Stored:
    """What stands for a trajectory, held until the transaction ends; raises Unknown where nothing was decided yet."""
    for _ in range(REPLACED):
        found = driver(session).execute(_STORED + "key = %s AND project = %s FOR UPDATE", (key, project)).fetchone()
        if found is not None:
            return _stored(found)
    raise Unknown("verdict of trajectory", key)


def findings(session: Session, key: UUID) -> list[Finding]:
    """What was found in a trajectory, worst first as the audit ordered it."""
    rows = driver(session).execute("SELECT body FROM finding WHERE key = %s ORDER BY position", (key,)).fetchall()
    return [msgspec.json.decode(body, type=Finding) for (body,) in rows]


def deciding(session: Session, keys: Sequence[UUID]) -> dict[UUID, set[int]]:
    """The check versions that each trajectory's action rests on; not where a person decided, nor where nothing was found."""
    rows = driver(session).execute(
        "SELECT f.key, f.check_version FROM finding f JOIN verdict v ON v.key = f.key WHERE f.key = ANY(%s) AND f.deciding AND NOT v.by_person", (list(keys),)
    )
    found: dict[UUID, set[int]] = {}
    for key, check_version in rows.fetchall():
        found.setdefault(key, set()).add(check_version)
    return found


def first_findings(session: Session, keys: Iterable[UUID]) -> dict[UUID, Finding]:
    """The worst finding of each trajectory, for lists that say why something is there."""
    rows = driver(session).execute("SELECT key, body FROM finding WHERE key = ANY(%s) AND position = 0", (list(keys),)).fetchall()
    return {key: msgspec.json.decode(body, type=Finding) for key, body in rows}


def decide(session: Session, key: UUID, *, verdict: Verdict, action: Action, reward_override: float | None, cause: Cause | None) -> None:
    """Put a person's decision in the place of what stands; nothing waits for a person after it."""
    driver(session).execute(
        "UPDATE verdict SET verdict = %s, action = %s, reward_override = %s, cause = %s, by_person = true, open = false, final = true, retry = false"
        " WHERE key = %s",
        (int(verdict), ACTION_CODE[action], reward_override, CAUSE_CODE[cause], key),
    )


def take_back(session: Session, keys: Sequence[UUID]) -> dict[UUID, int | None]:
    """Accept and keep these, but for what a person judged meanwhile: which they are, with the number of what stood."""
    rows = driver(session).execute(
        "UPDATE verdict SET verdict = %s, action = %s, reward_override = NULL, cause = NULL, open = false, final = true, retry = false"
        " WHERE key = ANY(%s) AND NOT by_person RETURNING key, seq",
        (int(Verdict.ACCEPT), ACTION_CODE[Action.KEEP], list(keys)),
    )
    return dict(rows.fetchall())


def exclude(session: Session, keys: Sequence[UUID], *, retry: bool = False) -> set[UUID]:
    """These are out with their group, but for what a person judged meanwhile; which they are. What their own checks said stays."""
    return _with_group(session, keys, Action.EXCLUDE, retry=retry)


def admit(session: Session, keys: Sequence[UUID]) -> set[UUID]:
    """These were out with their group only, and are in again; which they are."""
    return _with_group(session, keys, Action.KEEP, retry=False)


def _with_group(session: Session, keys: Sequence[UUID], action: Action, *, retry: bool) -> set[UUID]:
    if not keys:
        return set()
    statement = "UPDATE verdict SET action = %s, reward_override = NULL, retry = %s WHERE key = ANY(%s) AND NOT by_person RETURNING key"
    return {row[0] for row in driver(session).execute(statement, (ACTION_CODE[action], retry, list(keys))).fetchall()}


def count_as_exploits(session: Session, keys: Sequence[UUID]) -> set[UUID]:
    """These are confirmed exploits of their tasks; those that were not counted as such before."""
    rows = driver(session).execute(
        f"UPDATE verdict SET counted = counted | {Counted.EXPLOIT:d} WHERE key = ANY(%s) AND counted & {Counted.EXPLOIT:d} = 0 RETURNING key", (list(keys),)
    )
    return {row[0] for row in rows.fetchall()}


class Recounted(NamedTuple):
    """How much more of a task counts, by the rewards of honest work and as confirmed exploits; less where it is negative."""

    environment_version: int
    task: int
    honest: int
    honest_sum: float
    exploits: int
    defects: int  # confirmed exploits not among them
    neutralised: int
    broken: int


FAULTS = Counted.EXPLOIT | Counted.DEFECT | Counted.NEUTRALISED | Counted.BROKEN
KEPT = Counted.EPISODE | Counted.SAMPLED


def recount(session: Session, keys: Iterable[UUID]) -> list[Recounted]:
    """Count these by the verdicts that they were just given, which no audit found: honest where accepted, no exploit unless still quarantined."""
    honest = f"{Counted.HONEST:d}"
    less = ", ".join(f"sum((counted_now & {bit:d}) / {bit:d} - (counted & {bit:d}) / {bit:d})" for bit in FAULTS)
    rows = driver(session).execute(
        "WITH held AS MATERIALIZED (SELECT v.key, v.counted, t.environment_version, t.task, t.reward FROM verdict v JOIN trajectory t USING (key)"
        " WHERE v.key = ANY(%s) ORDER BY v.key FOR UPDATE OF v),"
        f" now AS (UPDATE verdict v SET counted = CASE WHEN v.verdict = {Verdict.ACCEPT:d} AND h.reward IS NOT NULL THEN {honest} ELSE 0 END"
        f" | CASE WHEN v.verdict = {Verdict.QUARANTINE:d} THEN h.counted & {FAULTS:d} ELSE 0 END | (h.counted & {KEPT:d})"
        " FROM held h WHERE v.key = h.key RETURNING h.*, v.counted AS counted_now),"
        f" more AS (SELECT *, (counted_now & {honest}) / {honest} - (counted & {honest}) / {honest} AS honest FROM now)"
        f" SELECT environment_version, task, sum(honest), coalesce(sum(honest * reward), 0), {less} FROM more GROUP BY 1, 2 ORDER BY 1, 2",
        (list(keys),),
    )
    return [Recounted(*row) for row in rows.fetchall()]


def finish(session: Session, keys: Sequence[UUID]) -> None:
    """Nothing will supersede these by itself any more."""
    driver(session).execute("UPDATE verdict SET final = true WHERE key = ANY(%s) AND NOT final", (list(keys),))


class Resting(NamedTuple):
    """A standing decision that rests on a check."""

    project: int
    key: UUID
    id: str
    action: Action
    others: int  # deciding findings of other checks


def resting_on(session: Session, project: int, check_versions: Sequence[int], limit: int) -> list[Resting]:
    """Standing decisions of the policy, not a person's nor a group's alone, that exclude or override because of these check versions."""
    rows = (
        driver(session)
        .execute(
            "SELECT DISTINCT ON (v.key) v.project, v.key, t.id, v.action,"
            " (SELECT count(*) FROM finding o WHERE o.key = v.key AND o.deciding AND o.check_version <> ALL(%(checks)s))"
            " FROM finding f JOIN verdict v ON v.key = f.key JOIN trajectory t ON t.key = v.key"
            " WHERE f.check_version = ANY(%(checks)s) AND f.deciding AND v.project = %(project)s AND v.action IN (1, 2) AND v.verdict = 3"
            " AND NOT v.by_person ORDER BY v.key LIMIT %(limit)s",
            {"checks": list(check_versions), "project": project, "limit": limit},
        )
        .fetchall()
    )
    return [Resting(project, key, id_, ACTIONS[action], others) for project, key, id_, action, others in rows]


def _stored(r: tuple[Any, ...]) -> Stored:
    key, verdict, action, cause, probability, override, retry, final, open_, by_person, seq, policy, outcomes, notes = r
    return Stored(
        key=key,
        verdict=Verdict(verdict),
        action=ACTIONS[action],
        cause=cause_of(cause),
        probability=probability,
        reward_override=override,
        retry=retry,
        final=final,
        open=open_,
        by_person=by_person,
        seq=seq,
        policy=policy,
        outcomes=tuple(Outcome(code) for code in bytes(outcomes)),
        notes=_notes(notes),
    )


def notes_of(row: NewVerdict) -> dict[int, str]:
    """The notes of a row as an audit wrote it."""
    return _notes(row.notes)


def _notes(packed: bytes | None) -> dict[int, str]:
    return msgspec.msgpack.decode(packed, type=dict[int, str]) if packed else {}
