"""Looks at states whose evidence asks for another, moves them within what the fleet allows, and tells the owners."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import structlog
from sqlalchemy import Engine
from sqlmodel import Session

from inspector import probing, quarantine
from inspector.assignments import handed_over
from inspector.errors import Unknown
from inspector.showable import shell_word
from inspector.standing import DEFAULT, Move, Now, Rules, Why, conditions, decide, fleet
from inspector.standing.machine import expired
from inspector.store import decisions, environments, owner_notices, packages, replays, standings, states
from inspector.store.owner_notices import Notice
from inspector.store.session import transaction
from inspector.store.standings import Place, Row
from inspector.store.states import WHOLE, Standing
from inspector.task import State

log = structlog.get_logger()
AT_ONCE = 100
SPARE = 10  # golden replays beyond those that release, for states that cannot be graded any more


def settle(engine: Engine, rules: Rules = DEFAULT) -> set[int]:
    """Look at all that is due, each in a transaction of its own; the projects whose feeds tell of it."""
    with transaction(engine) as session:
        due = standings.due(session, AT_ONCE)
    told: set[int] = set()
    for place in due:
        with transaction(engine) as session:
            told |= set(look_at(session, place, rules))
    return told


def look_at(session: Session, place: Place, rules: Rules = DEFAULT) -> dict[int, int]:
    """Move one where its evidence asks for it; the feed head of each project that was told."""
    environments.lock(session, place.environment_version)
    if place.task != WHOLE:
        states.lock_tasks(session, [place.task])
    row = standings.of(session, place, lock=True)
    if row is None:
        return {}
    at = datetime.now(UTC)
    bar = fleet.bar(standings.scores(session), rules) if place.task == WHOLE else None
    move = decide(row.now, row.evidence, at, tasks=standings.tasks(session, place, row.evidence), bar=bar, rules=rules)
    if move is None:
        return _stays(session, row, at)
    share = None
    if place.task == WHOLE and move.after is State.QUARANTINED:
        hour, posted = standings.hour(session)
        weight = float(posted.get(place.environment_version, 0))
        if not fleet.allows(hour, weight, rules):
            return _asked(session, row, move, rules)
        share = fleet.share(hour, weight)
    return _moved(session, row, move, share)


def _moved(session: Session, row: Row, move: Move, share: float | None) -> dict[int, int]:
    """Change the state, see to what may release it, and tell the owners; the feeds come last."""
    name, task = owner_notices.name(session, row.place)
    _tell(session, row.place, move.after.value, move.note, row._replace(now=Now(move.after, move.why)))
    if move.after is State.QUARANTINED:
        replays.again(session, row.place.environment_version, row.place.task or None, DEFAULT.golden + SPARE)
    if move.after in (State.WATCH, State.QUARANTINED):
        probing.ask_unasked(session, *name, move.note, task=task)
    log.warning("state changed", environment=name.environment, version=name.version, task=task, before=row.now.state, after=move.after, why=move.note)
    return quarantine.move(session, name, row.place, task, move, share=share)


def _asked(session: Session, row: Row, move: Move, rules: Rules) -> dict[int, int]:
    """Enough was quarantined this hour: it is watched, and a person is asked once."""
    if row.now.why is Why.FLEET:
        standings.look_again(session, row.place, datetime.now(UTC) + timedelta(seconds=quarantine.ASK_S))
        return {}
    note = f"more than {rules.fleet_share:.0%} of the training weight would be quarantined within an hour without a person: {move.note}"
    _tell(session, row.place, "asked", note, row)
    name, task = owner_notices.name(session, row.place)
    return quarantine.move(session, name, row.place, task, Move(State.WATCH, Why.FLEET, note))


def _stays(session: Session, row: Row, at: datetime) -> dict[int, int]:
    """Nothing follows yet; the owner of a quarantine that nobody looked at is reminded."""
    again = None
    if row.now.state is State.QUARANTINED and not row.now.held:
        since = row.now.since or at
        again = max(since, at) + timedelta(seconds=DEFAULT.expiry_s) if expired(row.now, at) else since + timedelta(seconds=DEFAULT.expiry_s)
        if expired(row.now, at):
            _tell(session, row.place, "reminded", f"quarantined since {since:%Y-%m-%d %H:%M} UTC, and nobody has looked", row)
    standings.look_again(session, row.place, again)
    return {}


def _tell(session: Session, place: Place, kind: str, note: str, row: Row) -> None:
    name, task = owner_notices.name(session, place)
    where = decisions.where(Standing(name.environment, name.version, task, row.now.state, None))
    release = conditions(row.now, row.evidence)
    notice = Notice(
        kind=kind,
        environment=name.environment,
        version=name.version,
        task=task,
        note=note,
        where=where,
        release=release,
        reproduce=command(session, place, task),
    )
    owner_notices.add(session, owner_notices.owners(session, place.environment_version), place, notice)


def command(session: Session, place: Place, task: str | None) -> str | None:
    """How the version's registered package is probed on a command line, beside the folder that was packed; None where there is none."""
    try:
        package = packages.of(session, place.environment_version).package
    except Unknown:
        return None
    words = [
        "inspector",
        "probe",
        handed_over(package.face, package.entry),
        *(["--dataset", package.dataset] if package.dataset else []),
        *(["--task", task] if task else []),
    ]
    return " ".join(map(shell_word, words))
