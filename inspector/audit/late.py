"""Late checks: those of whole groups, on a queue of their own; what they say amends what stands, through the same log."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple
from uuid import UUID

import structlog
from sqlmodel import Session

from inspector import engine as checks_engine
from inspector.audit import draining, group_work, isolation, subjects, usual
from inspector.audit.auditor import ALONE_S, CLOSINGS, Auditor, log_all, with_groups
from inspector.audit.deciding import Judged
from inspector.audit.late_answers import Answer, Answers, answered, ended
from inspector.audit.stops import Watch
from inspector.audit.subjects import Audited, Opened
from inspector.check import Check, Group
from inspector.engine import Assessment, Needs
from inspector.errors import Unavailable
from inspector.store import environments, groups, runs, standings, trajectories, verdicts, work
from inspector.store.codes import ACTION_CODE, CAUSE_CODE
from inspector.store.decisions import Numbered, Revoked
from inspector.store.groups import Member
from inspector.store.session import AlreadyThere, driver, transaction
from inspector.store.work import Claim, Lane
from inspector.trajectory import EnvironmentRef, GroupRef, Header, RunRef, TaskRef, Trajectory
from inspector.verdict import Finding, Outcome, Scope

log = structlog.get_logger()
GIVING_UP_S = 2.0  # of a sweep; where nobody runs late checks, more becomes overdue than one block between two sweeps
GROUP_BYTES = 256 << 20  # of raw lines that the checks of one group may read


class Inspected(NamedTuple):
    """A claimed group with what its checks said."""

    claim: Claim
    answers: Answers
    members: frozenset[UUID]  # whom they were said of: one that came meanwhile waits for the next answers


Stood = tuple[verdicts.NewVerdict, tuple[Finding, ...]]  # what stands for a trajectory, with its findings


class LateAuditor:
    """Works with what one process's auditor has opened."""

    def __init__(self, auditor: Auditor) -> None:
        self._auditor = auditor
        self._engine, self._pace, self._plans = auditor.engine, auditor.pace, auditor.plans

    def drain(self, for_s: float = math.inf) -> int:
        """Run what waits, and begin no block after `for_s`; how many groups."""
        return draining.drain(self.claim, self.audit, for_s)

    def claim(self) -> list[Claim]:
        """Lease a block."""
        with transaction(self._engine) as session:
            driver(session).execute("SET LOCAL synchronous_commit = off")
            return work.claim(session, self._pace.lease_s, block=work.LATE_BLOCK, lane=Lane.LATE)

    def audit(self, claims: Sequence[Claim]) -> None:
        """Inspect a block and close it."""
        with self._auditor.heartbeat.holding(claims):
            inspected = self._inspect_in_time(claims)
            self._close(inspected)

    def give_up(self, for_s: float = GIVING_UP_S) -> int:
        """Close what is overdue, and begin no block after `for_s`: its checks are not assessed, and its members are final; how many groups."""
        done, end, closed = 0, time.monotonic() + for_s, work.LATE_BLOCK
        while closed == work.LATE_BLOCK and time.monotonic() < end:
            closed = self._give_up_block()
            done += closed
        return done

    def _give_up_block(self) -> int:
        with transaction(self._engine) as session:
            claims = work.claim_overdue(session, self._pace.late_deadline_s, self._pace.lease_s, block=work.LATE_BLOCK)
            note = f"deadline: no answer within {self._pace.late_deadline_s:g} s"
            inspected = [self._unread(session, claim, groups.of(session, claim.group), note) for claim in claims if claim.group is not None]
        if inspected:
            log.warning("late checks are overdue", groups=len(inspected))
            self._close(inspected)
        return len(inspected)

    # --- inspecting ------------------------------------------------------------------------------------------------

    def _inspect_in_time(self, claims: Sequence[Claim]) -> list[Inspected]:
        if not self._auditor.alarms:
            return [self._inspect(claim) for claim in claims]
        isolation.deadline(self._pace.deadline_s + (ALONE_S if claims[0].claims > 2 else 0.0))
        try:
            return [self._inspect(claim) for claim in claims]
        finally:
            isolation.no_deadline()

    def _inspect(self, claim: Claim) -> Inspected:
        assert claim.group is not None, "only groups have late checks"
        with transaction(self._engine) as session:
            extent, members = groups.extent(session, claim.group), groups.of(session, claim.group)
            if extent.length > GROUP_BYTES:
                return self._unread(session, claim, members, f"group: its lines have {extent.length} bytes, and at most {GROUP_BYTES} are read")
            checks = self._checks(session, claim, members)
            opened, _ = subjects.open_block(session, self._auditor.reader, [claim._replace(key=member.key) for member in members])
        if not opened:
            return _inspected(claim, members, _same(checks, Answer(Outcome.ERROR, "the stored bytes are damaged", ())))
        whole = partial(_group, extent.name, extent.complete and len(opened) == len(members))
        if claim.claims > 2:
            return _inspected(claim, members, _answers(checks, isolation.group_alone(checks, opened, whole, self._pace.deadline_s)))
        return _inspected(claim, members, _answers(checks, self._run(claim, checks, opened, whole([one.read() for one in opened]))))

    def _run(self, claim: Claim, checks: Sequence[Check], opened: Sequence[Opened], group: Group) -> Assessment:
        contents = [subjects.content_of(t, one.subject.task) for t, one in zip(group.trajectories, opened, strict=True)]
        with transaction(self._engine) as session:
            needs = subjects.needs(session, claim.project, checks, opened, group.trajectories, contents)
            first = group.trajectories[0].environment
            baselines = self._auditor.usual.of(session, claim.project, {(first.id, first.version)}) if usual.needed(checks) else {}
        [assessment] = checks_engine.run_groups(checks, [group], Needs([opened[0].declaration], needs.history, baselines, needs.probed))
        return assessment

    def _checks(self, session: Session, claim: Claim, members: Sequence[Member]) -> list[Check]:
        """Every late check that a member was selected for."""
        plans = [self._plans.of(session, claim.project, selection) for selection in {member.selection for member in members}]
        return list({check.identity: check for plan in plans for check in plan.late.values()}.values())

    def _unread(self, session: Session, claim: Claim, members: Sequence[Member], note: str) -> Inspected:
        return _inspected(claim, members, _same(self._checks(session, claim, members), Answer(Outcome.NOT_ASSESSED, note, ())))

    # --- closing ---------------------------------------------------------------------------------------------------

    def _close(self, inspected: Sequence[Inspected]) -> None:
        for attempt in range(CLOSINGS):
            try:
                projects, watches, due = self._close_once(inspected)
                break
            except (AlreadyThere, Unavailable, Revoked) as error:  # a member was audited again at this moment
                log.warning("closing again", reason=str(error))
                if attempt == CLOSINGS - 1:
                    raise
                self._plans.forget()  # it may be a revoked check
        if projects:
            self._auditor.wake(projects)
        for watched in watches:
            self._auditor.watch(watched)
        if due:
            self._auditor.settle()

    def _close_once(self, inspected: Sequence[Inspected]) -> tuple[set[int], list[Watch], bool]:
        """One transaction: what is still ours is judged anew, with what stands for its members, and logged."""
        with transaction(self._engine) as session:
            held = work.close(session, [one.claim for one in inspected])
            ours = [one for one in inspected if one.claim.id in held]
            found = groups.members(session, {one.claim.group for one in ours if one.claim.group is not None})
            of_group = {one.claim.group: one for one in ours}
            answers = {m.key: (of_group[group], m) for group, members in found.items() for m in members if m.key in of_group[group].members}
            standing = verdicts.take(session, sorted(answers))
            judged = self._judged(session, answers, standing)
            earlier = {key: row for key, (row, _) in standing.items()}
            entries, watches, events = self._auditor.write(session, judged, earlier)
            claims = [one.claim for one in ours]
            entries = with_groups(entries, group_work.decide(session, self._auditor.policy, claims, late=_asked_already, events=events))
            entries = {project: [entry for entry in of_project if not _stood(entry, earlier)] for project, of_project in entries.items()}
            due = standings.count(session, events)
            log_all(session, entries, judged)
        return {claim.project for claim in claims}, watches, due

    def _judged(self, session: Session, answers: Mapping[UUID, tuple[Inspected, Member]], standing: Mapping[UUID, Stood]) -> list[Judged]:
        about = trajectories.subjects(session, list(standing))
        declared = environments.declarations(session, {subject.task for subject in about.values()})
        names = groups.names(session, {one.claim.group for one, _ in answers.values() if one.claim.group is not None})
        run_names = runs.names(session, {subject.run for subject in about.values() if subject.run is not None})
        audited, plans = [], {}
        for key, subject in about.items():
            (inspected, member), (row, findings) = answers[key], standing[key]
            plans[key] = plan = self._plans.of(session, subject.project, subject.selection)
            header = _header(member, names[inspected.claim.group or 0], run_names.get(subject.run) if subject.run is not None else None)
            said = ended(plan, answered(plan, Assessment(row.outcomes, findings, verdicts.notes_of(row)), inspected.answers))
            audited.append(Audited(inspected.claim, subject, header, declared[subject.task], row.content, said, state=row.state, answer=row.answer))
        means = self._auditor.honest_means(session, audited)
        beliefs = {a.subject.project: self._auditor.beliefs.of(session, a.subject.project) for a in audited}
        return [self._auditor.judged(a, plans[a.subject.key], means(a), beliefs[a.subject.project]) for a in audited]


def _group(name: str, complete: bool, read: Sequence[Trajectory]) -> Group:
    return Group(name, read, complete)


def _inspected(claim: Claim, members: Sequence[Member], answers: Answers) -> Inspected:
    return Inspected(claim, answers, frozenset(member.key for member in members))


def _same(checks: Sequence[Check], answer: Answer) -> Answers:
    return dict.fromkeys((check.identity for check in checks), answer)


def _answers(checks: Sequence[Check], assessment: Assessment) -> Answers:
    def of(at: int, check: Check) -> Answer:
        found = tuple(f for f in assessment.findings if (f.check, f.version) == (check.name, check.version))
        return Answer(assessment.outcomes[at], assessment.notes.get(at), found)

    return {check.identity: of(at, check) for at, check in enumerate(checks)}


def _header(member: Member, group: str, run: str | None) -> Header:
    return Header(
        id=member.id,
        environment=EnvironmentRef(id=member.environment, version=member.version),
        task=TaskRef(id=member.task_name),
        reward=member.reward,
        group=GroupRef(id=group),
        run=RunRef(id=run) if run is not None else None,
    )


def _stood(entry: Numbered, earlier: Mapping[UUID, verdicts.NewVerdict]) -> bool:
    """Whether it says what was logged before: a member that went out with its group goes out with it again."""
    row = earlier.get(entry.key) if entry.key is not None else None
    if row is None or row.seq is None:
        return False
    decision = entry.decision
    same_cause = decision.scope is Scope.GROUP or CAUSE_CODE[decision.cause] == row.cause  # a group names none, its member may have one
    return same_cause and (ACTION_CODE[decision.action], decision.reward_override) == (row.action, row.reward_override)


def _asked_already(project: int, selection: int) -> bool:
    return False
