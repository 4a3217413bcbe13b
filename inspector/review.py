"""A person's judgement of a trajectory, and the taking back of all that rested on a check; both go through the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from sqlmodel import Session

from inspector.errors import BadSubmission
from inspector.standing import Seen
from inspector.store import decisions, environments, labels, reviews, runs, selections, standings, trajectories, verdicts, work
from inspector.store.decisions import Numbered
from inspector.store.reviews import Said
from inspector.store.standings import Event, How
from inspector.store.trajectories import Summary
from inspector.store.verdicts import Recounted, Resting
from inspector.verdict import Action, Cause, Decision, Mode, Scope, Verdict


class JudgementOfPerson(StrEnum):
    """What a reviewer may say of a trajectory."""

    ACCEPT = "accept"
    QUARANTINE = "quarantine"
    OVERRIDE = "override"


_MEANING = {
    JudgementOfPerson.ACCEPT: (Verdict.ACCEPT, Action.KEEP),
    JudgementOfPerson.QUARANTINE: (Verdict.QUARANTINE, Action.EXCLUDE),
    JudgementOfPerson.OVERRIDE: (Verdict.QUARANTINE, Action.OVERRIDE_REWARD),
}


def judge(
    session: Session,
    project: int,
    key: UUID,
    person: str,
    judgement: JudgementOfPerson,
    reward: float | None,
    note: str,
    cause: Cause | None = None,
    *,
    canary: bool = False,
) -> Decision:
    """Overrule (or confirm) what stands; the decision is final, and no later audit changes it. Raises Unknown and BadSubmission.

    Where the person names no cause, that of the checks stands in the decision. A canary is a known fault that was planted,
    to see whether the checks find it.
    """
    subject = trajectories.find(session, project, key)
    _check_cause(judgement, cause)
    if canary and cause is None:
        raise BadSubmission("a canary is a fault whose cause is known: name it", path="$.canary")
    _check_reward(session, subject.task, subject.reward, judgement, reward)
    standing = verdicts.lock(session, project, key)
    before = None if standing.by_person else standing.verdict
    verdict, action = _MEANING[judgement]
    decided = None if judgement is JudgementOfPerson.ACCEPT else cause or standing.cause
    verdicts.decide(session, key, verdict=verdict, action=action, reward_override=reward, cause=decided)
    _recount(session, project, [key])
    [about] = trajectories.summaries(session, project, [key])
    mode = runs.modes(session, [subject.run]).get(subject.run, Mode.OBSERVE) if subject.run is not None else Mode.OBSERVE
    work.add_groups_of(session, [key])
    author, reasons = f"person:{person}", (f"judged by {person}",)
    decision = _about(about, action, decided, author=author, mode=mode, supersedes=standing.seq, reward_override=reward, reasons=reasons)
    seq = decisions.append(session, project, [Numbered(decision, key)])
    reviews.add(session, project, key, Said(person, judgement.value, reward, cause, note, before, canary), seq)
    labels.close(session, key)
    return decisions.read(session, project, [seq])[seq]


def _check_cause(judgement: JudgementOfPerson, cause: Cause | None) -> None:
    if judgement is JudgementOfPerson.ACCEPT and cause is not None:
        raise BadSubmission(f"{cause.value} is the cause of a fault, and what is accepted has none", path="$.cause")


def _check_reward(session: Session, task: int, paid: float | None, judgement: JudgementOfPerson, reward: float | None) -> None:
    if judgement is not JudgementOfPerson.OVERRIDE:
        if reward is not None:
            raise BadSubmission(f"{reward:g} goes only with the judgement override, not with {judgement.value}", path="$.reward")
        return
    if reward is None:
        raise BadSubmission("the judgement override needs the reward to use", path="$.reward")
    if paid is None:
        raise BadSubmission("the trajectory was not scored: there is no reward to override", path="$.judgement")
    declared = environments.declarations(session, [task])[task].reward
    lowest = declared.min if declared.penalty_min is None else declared.penalty_min
    if (lowest is not None and reward < lowest) or (declared.max is not None and reward > declared.max):
        raise BadSubmission(f"{reward:g} is outside what the environment declares: {lowest} to {declared.max}", path="$.reward")


class Revocation(NamedTuple):
    """What taking back a check version does, or would do."""

    decisions: int  # superseded by keep
    remaining: int  # that rest on other checks too, and stand
    by_action: dict[str, int]


def revoke(session: Session, project: int, check: str, version: int, person: str, *, preview: bool, limit: int = 1_000_000) -> Revocation:
    """Supersede every standing decision of this project that rests on this check version alone, in one act.

    A preview changes nothing. A person's decisions stand, and so do those that another check supports.
    """
    ids = selections.ids_of(session, check, version)
    resting = verdicts.resting_on(session, project, ids, limit)
    if not preview:
        selections.revoke(session, ids, project)
        superseded = verdicts.take_back(session, [r.key for r in resting if r.others == 0])
        _recount(session, project, superseded)
        decisions.count_revocation(session, project)  # what was closed until here is seen below; what closes later is judged again
        missed = [r for r in verdicts.resting_on(session, project, ids, limit) if r.others == 0]
        taken_back = verdicts.take_back(session, [r.key for r in missed])
        _recount(session, project, taken_back)
        superseded |= taken_back
        resting += missed
        _log_taken_back(session, project, superseded, f"{check}@{version} was revoked by {person}", f"person:{person}")
    return _counted(resting)


def _recount(session: Session, project: int, keys: Iterable[UUID]) -> None:
    """What was learnt from these follows what stands now."""
    honest: dict[int, tuple[int, float]] = {}
    changed = verdicts.recount(session, keys)
    for one in changed:
        count, total = honest.get(one.environment_version, (0, 0.0))
        honest[one.environment_version] = (count + one.honest, total + one.honest_sum)
    environments.learn_honest(session, project, {version: more for version, more in honest.items() if more[0]})
    environments.count_exploits(session, {one.task: one.exploits for one in changed if one.exploits})
    standings.count(session, [event for one in changed for event in _withdrawn(one)])


def _withdrawn(one: Recounted) -> list[Event]:
    """What is no longer held against its task. What was quarantined for it stays so until a condition of release is met."""
    gone = [
        (Seen(defect=True, exploit=True), one.exploits),
        (Seen(defect=True), one.defects),
        (Seen(neutralised=True), one.neutralised),
        (Seen(broken=True), one.broken),
    ]
    return [Event(one.task, seen, How.WITHDRAWN) for seen, more in gone for _ in range(-more)]


def _counted(resting: Sequence[Resting]) -> Revocation:
    alone = [r for r in resting if r.others == 0]
    return Revocation(len(alone), len(resting) - len(alone), dict(Counter(r.action.value for r in alone)))


def _log_taken_back(session: Session, project: int, superseded: Mapping[UUID, int | None], reason: str, author: str) -> None:
    work.add_groups_of(session, superseded)
    modes = trajectories.modes(session, list(superseded))
    entries = []
    for about in trajectories.summaries(session, project, superseded):
        mode, supersedes = modes.get(about.key, Mode.OBSERVE), superseded[about.key]
        entries.append(Numbered(_about(about, Action.KEEP, None, author=author, mode=mode, supersedes=supersedes, reasons=(reason,)), about.key))
    decisions.append(session, project, entries)


def _about(
    about: Summary,
    action: Action,
    cause: Cause | None,
    *,
    author: str,
    mode: Mode,
    supersedes: int | None,
    reward_override: float | None = None,
    reasons: tuple[str, ...] = (),
) -> Decision:
    return Decision(
        seq=0,
        scope=Scope.TRAJECTORY,
        action=action,
        cause=cause,
        trajectory=about.id,
        key=str(about.key),
        group=about.group,
        environment=about.environment,
        version=about.version,
        task=about.task,
        run=about.run,
        reward_override=reward_override,
        final=True,
        author=author,
        mode=mode,
        reasons=reasons,
        supersedes=supersedes,
        decided_at=datetime.now(UTC),
    )
