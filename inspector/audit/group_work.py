"""Decides a group together, once all its members were audited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from sqlmodel import Session

from inspector.audit.deciding import Circumstances
from inspector.group_policy import judge_group
from inspector.policy import GroupJudgement, Policy
from inspector.standing import Seen
from inspector.store import environments, groups, runs, verdicts, work
from inspector.store.codes import ACTIONS
from inspector.store.decisions import Numbered
from inspector.store.groups import Member
from inspector.store.standings import Event, How
from inspector.store.work import Claim
from inspector.verdict import Action, Decision, Impact, Judgement, Scope, Verdict


def decide(session: Session, policy: Policy, claims: Sequence[Claim], *, late: Callable[[int, int], bool], events: list[Event]) -> dict[int, list[Numbered]]:
    """Feed entries of each project for these groups.

    `late` says whether a project's selection has checks for its whole group; those are asked for, also where a member waits
    for one that is not installed here, and the members are final after them. Where there are none they are final now.
    What an override that went out with its group says of its task is added to `events`.
    """
    wanted = {claim.group: claim.project for claim in claims if claim.group is not None}
    if not wanted:
        return {}
    members = groups.members(session, wanted)
    names = groups.names(session, wanted)
    _ask_again_where_mixed(session, wanted, members)
    run_ids = {m.run for found in members.values() for m in found if m.run is not None}
    now = Circumstances(runs.modes(session, run_ids), runs.stopped(session, run_ids))
    run_names = runs.names(session, run_ids)
    waiting = {group for group, found in members.items() if any(m.pending or late(wanted[group], m.selection) for m in found)}
    work.add_late(session, [(wanted[group], group) for group in waiting])
    judged = {group: policy.judge_group([_judgement(m) for m in found], [m.reward for m in found]) for group, found in sorted(members.items())}
    changed = _moved(session, judged, members)
    unheeded = _unheeded(session, now, members)
    entries: dict[int, list[Numbered]] = {}
    for group, judgement in judged.items():
        enforced = _enforced(policy, judgement, members[group], unheeded)
        told = _Told(names[group], judgement, f"policy:{policy.name}", final=group not in waiting, enforced=enforced)
        logged = [_entry(m, told, run_names, now) for m in members[group] if m.key in changed]
        if logged:
            entries.setdefault(wanted[group], []).extend(logged)
    lost = [members[group][at] for group, judgement in judged.items() for at in judgement.confirmed_exploits]
    events += _count_exploits(session, lost)
    verdicts.finish(session, [m.key for group, found in members.items() if group not in waiting for m in found])
    return entries


def impact_of(members: Sequence[Member]) -> Impact | None:
    """What the decisions about its members leave of a group; None where all is as it was posted."""
    return judge_group([_judgement(m) for m in members], [m.reward for m in members]).impact


def _unheeded(session: Session, now: Circumstances, members: Mapping[int, Sequence[Member]]) -> set[UUID]:
    """Members whose own decision no trainer is to act on: it rests on checks whose enforcement is stopped in their run."""
    runs_of = {m.key: m.run for found in members.values() for m in found if m.run in now.stopped}
    deciding = verdicts.deciding(session, list(runs_of)) if runs_of else {}
    return {key for key, checks in deciding.items() if not now.enforced(runs_of[key], checks)}


def _enforced(policy: Policy, judged: GroupJudgement, found: Sequence[Member], unheeded: set[UUID]) -> bool:
    """Whether the group would be out without those members too."""
    if judged.action is not Action.EXCLUDE or not any(m.key in unheeded for m in found):
        return True
    heeded = [_KEPT if m.key in unheeded else _judgement(m) for m in found]
    return policy.judge_group(heeded, [m.reward for m in found]).action is Action.EXCLUDE


def _moved(session: Session, judged: Mapping[int, GroupJudgement], members: Mapping[int, Sequence[Member]]) -> set[UUID]:
    """The members that went out with their groups, or are in again: a group may have been decided before its last members, or their rewards, had come."""
    out: dict[bool, list[UUID]] = {False: [], True: []}  # by whether new rollouts may succeed
    back = []
    for group, judgement in judged.items():
        if judgement.action is Action.EXCLUDE:
            out[judgement.retry] += [m.key for m in members[group] if ACTIONS[m.action] is not Action.EXCLUDE]
        else:
            back += [m.key for m in members[group] if _out_with_group(m)]
    moved = [verdicts.exclude(session, keys, retry=retry) for retry, keys in out.items()]
    return set().union(*moved, verdicts.admit(session, back))


def _count_exploits(session: Session, lost: Sequence[Member]) -> list[Event]:
    if not lost:
        return []
    new = verdicts.count_as_exploits(session, [m.key for m in lost])
    environments.count_exploits(session, Counter(m.task for m in lost if m.key in new))
    return [Event(m.task, Seen(defect=True, exploit=True), How.LATE) for m in lost if m.key in new]


def _ask_again_where_mixed(session: Session, wanted: dict[int, int], members: dict[int, list[Member]]) -> None:
    """Members that were audited before the other task came could not know; they are audited once more."""
    mixed = [group for group, found in members.items() if len({m.task for m in found}) > 1]
    for group in groups.mark_mixed(session, mixed):
        work.add_trajectories(session, wanted[group], [m.key for m in members[group]])


_KEPT = Judgement(verdict=Verdict.ACCEPT, probability=0.0, action=Action.KEEP)


def _judgement(member: Member) -> Judgement:
    """By its own checks."""
    action = Action.KEEP if _out_with_group(member) else ACTIONS[member.action]
    return Judgement(
        verdict=Verdict(member.verdict), probability=0.0, action=action, cause=member.cause, reward_override=member.reward_override, retry=member.retry
    )


def _out_with_group(member: Member) -> bool:
    """Nothing but its group excludes what was not quarantined. An override that went out with its group stays out."""
    return ACTIONS[member.action] is Action.EXCLUDE and member.verdict < Verdict.QUARANTINE


class _Told(NamedTuple):
    """What the entries of a group's members have in common."""

    group: str
    judgement: GroupJudgement
    author: str
    final: bool
    enforced: bool


def _entry(member: Member, told: _Told, run_names: Mapping[int, str], now: Circumstances) -> Numbered:
    decision = Decision(
        seq=0,
        scope=Scope.GROUP,
        action=told.judgement.action,
        trajectory=member.id,
        key=str(member.key),
        group=told.group,
        environment=member.environment,
        version=member.version,
        task=member.task_name,
        run=run_names.get(member.run) if member.run is not None else None,
        final=told.final,
        author=told.author,
        mode=now.mode(member.run),
        retry=told.judgement.retry,
        enforced=told.enforced,
        impact=told.judgement.impact,
        reasons=(told.judgement.reason or "enough of its group is left",),
        supersedes=member.seq,
        decided_at=datetime.now(UTC),
    )
    return Numbered(decision, member.key)
