"""Decides from a state and its evidence whether another state follows, and says why."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from inspector.standing.evidence import Evidence
from inspector.standing.rules import DEFAULT, Rules
from inspector.task import State


class Why(StrEnum):
    """What a state rests on. The words are stored."""

    NOTHING = ""  # nothing was held against it yet
    DEFECTS = "defects"
    EXPLOITS = "exploits"
    INFRASTRUCTURE = "infrastructure"
    PROBE = "probe"
    REPLAYS = "replays"
    CHECK = "check"  # one that acted on too large a share of a run
    FLEET = "fleet"  # it would be quarantined, but enough was in this hour: a person is asked
    CLEAN = "clean"  # a condition of release was met
    PERSON = "person"


MEASURED = (Why.DEFECTS, Why.INFRASTRUCTURE)  # what clean episodes and replays speak against; against an exploit they say nothing
NEW_VERSION = "a new version of the environment, which starts clean"  # a version's package and verifier do not change
HEARD = (Why.PROBE, Why.REPLAYS, Why.CHECK)


class Now(NamedTuple):
    """Where a task or an environment version stands."""

    state: State = State.ACTIVE
    why: Why = Why.NOTHING
    since: datetime | None = None
    held: bool = False  # by a person: nothing moves it until they hand it back


class Move(NamedTuple):
    """A change of state, and the evidence in words."""

    after: State
    why: Why
    note: str


def decide(now: Now, evidence: Evidence, at: datetime, *, tasks: int | None = None, bar: float | None = None, rules: Rules = DEFAULT) -> Move | None:
    """What follows, or None where it stays; `tasks` is how many an environment version has, and None for a task; `bar` is not below the rules'."""
    if now.held:
        return None
    bar = max(rules.bar, bar or 0.0)
    match now.state:
        case State.ACTIVE | State.WATCH:
            return _entered(evidence, tasks, bar, rules) or (_watched(evidence, rules) if now.state is State.ACTIVE else _calmed(now, evidence, rules))
        case State.QUARANTINED:
            return _released(now, evidence, at, rules)
        case State.PROBATION:
            return _again(evidence, tasks, bar, rules) or _passed(evidence, bar, rules)
    return None


def conditions(now: Now, evidence: Evidence, *, rules: Rules = DEFAULT) -> list[str]:
    """What would release it, each by itself."""
    if now.state not in (State.QUARANTINED, State.RETIRED, State.PROBATION, State.WATCH):
        return []
    if now.held or now.state is State.RETIRED:
        return ["a person sets another state, or hands it back"]
    if now.state is State.PROBATION:
        return [f"{rules.probation_episodes} audited episodes without a new quarantine: {evidence.episodes} were seen"]
    if now.state is State.WATCH:
        return _out_of_watch(now, evidence, rules)
    ways = [NEW_VERSION, "a person sets another state"]
    if now.why in MEASURED:
        ways += [
            f"{rules.golden} clean replays of stored final states in a row: {evidence.golden} so far",
            f"audited episodes that speak for a defect rate of {rules.good:g} against {rules.bad:g}: {evidence.clearing:.2f} of {-rules.clear:.2f}",
            f"{rules.golden_expired} clean replays and none that disagrees, once {rules.expiry_s / 86400:g} days have passed",
        ]
    return ways


def _out_of_watch(now: Now, evidence: Evidence, rules: Rules) -> list[str]:
    if now.why in HEARD:
        return [NEW_VERSION, "a person sets another state"]
    return [f"{_quiet(now, rules)} audited episodes in a row without a defect: {evidence.quiet} so far"]


def _entered(evidence: Evidence, tasks: int | None, bar: float, rules: Rules) -> Move | None:
    if tasks is None and evidence.exploits >= rules.task_exploits:
        return Move(State.QUARANTINED, Why.EXPLOITS, f"{evidence.exploits} confirmed exploits that the policy may still win by")
    if tasks is not None and evidence.exploits >= max(rules.version_tasks, rules.version_share * tasks):
        return Move(State.QUARANTINED, Why.EXPLOITS, f"confirmed exploits under {evidence.exploits} of its {tasks} tasks")
    if tasks is not None and evidence.outage >= rules.outage_bar:
        return Move(State.QUARANTINED, Why.INFRASTRUCTURE, f"infrastructure spoilt {evidence.broken} of {evidence.episodes} audited episodes")
    if evidence.score >= bar:
        return Move(State.QUARANTINED, Why.DEFECTS, _measured(evidence, bar))
    return None


def _watched(evidence: Evidence, rules: Rules) -> Move | None:
    if evidence.exploits or evidence.neutralised:
        return Move(State.WATCH, Why.EXPLOITS, "a first confirmed exploit" + ("" if evidence.exploits else ", which loses by itself"))
    if evidence.score >= rules.bar / 2:
        return Move(State.WATCH, Why.DEFECTS, "half of the evidence that quarantines: " + _measured(evidence, rules.bar))
    if evidence.outage >= rules.outage_bar / 2:
        return Move(State.WATCH, Why.INFRASTRUCTURE, f"infrastructure spoilt {evidence.broken} of {evidence.episodes} audited episodes")
    return None


def _calmed(now: Now, evidence: Evidence, rules: Rules) -> Move | None:
    if now.why in HEARD or evidence.quiet < _quiet(now, rules) or evidence.score > 0 or evidence.outage > 0:
        return None
    return Move(State.ACTIVE, Why.CLEAN, f"{evidence.quiet} audited episodes in a row without a defect")


def _quiet(now: Now, rules: Rules) -> int:
    return rules.quiet_exploits if now.why is Why.EXPLOITS else rules.quiet


def _released(now: Now, evidence: Evidence, at: datetime, rules: Rules) -> Move | None:
    if now.why not in MEASURED:
        return None
    if evidence.golden >= rules.golden:
        return Move(State.PROBATION, Why.CLEAN, f"{evidence.golden} clean replays in a row")
    if evidence.clearing <= -rules.clear and evidence.outage == 0.0:
        return Move(State.PROBATION, Why.CLEAN, f"{evidence.defects} defects in {evidence.episodes} audited episodes since it was quarantined")
    if expired(now, at, rules) and evidence.golden >= rules.golden_expired and not evidence.dirty:
        return Move(State.PROBATION, Why.CLEAN, f"nobody looked for {rules.expiry_s / 86400:g} days, and {evidence.golden} replays were clean")
    return None


def expired(now: Now, at: datetime, rules: Rules = DEFAULT) -> bool:
    """Whether a quarantine has lasted so long that its owner is to be reminded."""
    return now.state is State.QUARANTINED and now.since is not None and at - now.since >= timedelta(seconds=rules.expiry_s)


def _again(evidence: Evidence, tasks: int | None, bar: float, rules: Rules) -> Move | None:
    if evidence.exploits:
        return Move(State.QUARANTINED, Why.EXPLOITS, "a confirmed exploit under probation")
    return _entered(evidence, tasks, bar, rules)


def _passed(evidence: Evidence, bar: float, rules: Rules) -> Move | None:
    if evidence.episodes < rules.probation_episodes or evidence.score >= bar / 2 or evidence.outage >= rules.outage_bar / 2:
        return None
    return Move(State.ACTIVE, Why.CLEAN, f"{evidence.defects} defects in {evidence.episodes} audited episodes under probation")


def _measured(evidence: Evidence, bar: float) -> str:
    return f"{evidence.defects} defects in {evidence.episodes} audited episodes, score {evidence.score:.2f} of {bar:.2f}"
