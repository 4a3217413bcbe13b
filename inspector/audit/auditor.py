"""One worker's audits: blocks are leased, inspected with no transaction open, and closed in one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple
from uuid import UUID

import structlog
from sqlalchemy import Engine
from sqlmodel import Session

from inspector import engine as checks_engine
from inspector.audit import counting, deciding, draining, group_work, isolation, late_answers, look_back, regrades, sampling, stops, subjects, usual
from inspector.audit.beliefs import Belief, Beliefs
from inspector.audit.deciding import Circumstances, Judged
from inspector.audit.heartbeat import Heartbeat
from inspector.audit.plans import Plan, Plans
from inspector.audit.subjects import Audited, Opened
from inspector.catalog import Catalog
from inspector.engine import Needs
from inspector.errors import Unavailable
from inspector.policy import Policy
from inspector.store import decisions, environments, groups, patches, runs, standings, states, verdicts, work
from inspector.store.decisions import Numbered, Revoked
from inspector.store.segments import SegmentReader
from inspector.store.session import AlreadyThere, driver, transaction
from inspector.store.standings import Event
from inspector.store.trajectories import Subject
from inspector.store.verdicts import NewVerdict
from inspector.store.work import Claim
from inspector.task import UNDECLARED
from inspector.trajectory import EnvironmentRef, Header, TaskRef
from inspector.verdict import Action, Outcome

log = structlog.get_logger()
CLOSINGS = 3  # attempts at one block's closing transaction
ALONE_S = 5.0  # beyond the child's own limit: for its start and its end


class Pace(NamedTuple):
    """How blocks are taken; times in seconds."""

    lease_s: float = 30.0
    heartbeat_s: float = 5.0
    deadline_s: float = 10.0  # of one block; then its worker ends, and the block comes back smaller
    late_deadline_s: float = 600.0  # for the late checks of a group to answer; then they are not assessed
    hold_s: float = 30.0  # that a trainer is asked to wait for late checks
    block: int = work.BLOCK
    stop_share: float = 0.20
    stop_window: int = 1000
    replays: sampling.Shares = sampling.Shares()
    spot_checks: float = 0.01  # of all trajectories, how much a person is asked to look at whatever the checks say


class Closing(NamedTuple):
    """What a closed block leads to."""

    projects: set[int]  # whose waiting readers are to be woken
    watches: list[stops.Watch]
    promised: list[int]  # look-backs that were promised for those that had no verdict before
    groups: bool  # whether groups were decided, whose late checks may now wait
    due: bool  # whether the state of something is to be looked at


Entries = dict[int, list[Numbered]]  # of each project's feed


class Written(NamedTuple):
    """What was stored of a block, and what follows."""

    entries: Entries
    watches: list[stops.Watch]
    events: list[Event]  # what it says of its tasks


class Auditor:
    """What one worker process needs to audit."""

    def __init__(
        self,
        engine: Engine,
        reader: SegmentReader,
        catalog: Catalog,
        policy: Policy,
        pace: Pace,
        *,
        wake: Callable[[set[int]], None],
        watch: Callable[[stops.Watch], None],
        late: Callable[[], object] = lambda: None,
        settle: Callable[[], object] = lambda: None,
        alarms: bool = True,
    ) -> None:
        self.engine = engine
        self.reader = reader
        self.policy = policy
        self.pace = pace
        self.plans = Plans(catalog.checks)
        self.wake = wake
        self.watch = watch
        self.late = late  # called where late checks may wait
        self.settle = settle  # called where states are to be looked at
        self.alarms = alarms  # False in a thread, where no alarm can be set
        self.usual = usual.Usual()
        self.beliefs = Beliefs(policy)
        self.heartbeat = Heartbeat(engine, lease_s=pace.lease_s, every_s=pace.heartbeat_s)

    def drain(self, for_s: float = math.inf) -> int:
        """Audit until nothing is left to claim, and begin no block after `for_s`; how many subjects."""
        return draining.drain(self.claim, self.audit, for_s)

    def claim(self) -> list[Claim]:
        """Lease a block."""
        with transaction(self.engine) as session:
            driver(session).execute("SET LOCAL synchronous_commit = off")  # a lease that is lost with the server only costs a second claim
            return work.claim(session, self.pace.lease_s, block=self.pace.block)

    def audit(self, claims: Sequence[Claim]) -> None:
        """Inspect a block and close it."""
        with self.heartbeat.holding(claims):
            judged = self._inspect_in_time(claims)
            closing = self._close(claims, judged)
        if closing.projects:
            self.wake(closing.projects)
        for watched in closing.watches:
            self.watch(watched)
        if closing.groups:
            self.late()
        if closing.due:
            self.settle()
        if closing.promised:
            with transaction(self.engine) as session:
                look_back.keep(session, closing.promised)

    # --- inspecting ------------------------------------------------------------------------------------------------

    def _inspect_in_time(self, claims: Sequence[Claim]) -> list[Judged]:
        once = list({claim.key: claim for claim in claims if claim.key is not None}.values())  # it may have been asked for twice
        if not self.alarms:
            return self._inspect(once)
        isolation.deadline(self.pace.deadline_s + (ALONE_S if claims[0].claims > 2 else 0.0))
        try:
            return self._inspect(once)
        finally:
            isolation.no_deadline()

    def _inspect(self, claims: Sequence[Claim]) -> list[Judged]:
        if not claims:
            return []
        with transaction(self.engine) as session:
            opened, damaged = subjects.open_block(session, self.reader, claims)
            kinds = {(s.project, s.selection) for s in [o.subject for o in opened] + [subject for _, subject, _ in damaged]}
            plans = {kind: self.plans.of(session, *kind) for kind in kinds}
            beliefs = {project: self.beliefs.of(session, project) for project, _ in kinds}
        audited = [self._damaged(claim, subject, reason, plans[subject.project, subject.selection]) for claim, subject, reason in damaged]
        for project, selection in {(o.subject.project, o.subject.selection) for o in opened}:
            mine = [o for o in opened if (o.subject.project, o.subject.selection) == (project, selection)]
            audited += self._run(project, mine, plans[project, selection])
        means: Callable[[Audited], float | None] = _unknown
        if any(plan.late for plan in plans.values()) or any(a.assessment.findings for a in audited):
            with transaction(self.engine) as session:
                audited = late_answers.carried(session, audited, plans)
                means = self.honest_means(session, audited)
        return [self.judged(a, plans[a.subject.project, a.subject.selection], means(a), beliefs[a.subject.project]) for a in audited]

    def judged(self, audited: Audited, plan: Plan, honest_mean: float | None, belief: Belief) -> Judged:
        """What the policy makes of it."""
        return Judged(audited, plan, deciding.judge(self.policy, audited, plan, honest_mean, belief), belief)

    def _run(self, project: int, opened: Sequence[Opened], plan: Plan) -> list[Audited]:
        if opened[0].claim.claims > 2:
            return [isolation.audit_alone(o, plan, Needs([o.declaration]), self.pace.deadline_s) for o in opened]
        read, contents = subjects.read_all(opened)
        answers = subjects.answers_of(plan.checks, opened, read)
        with transaction(self.engine) as session:
            needs = subjects.needs(session, project, plan.checks, opened, read, contents)
            needs = replace(needs, payments=subjects.payments(session, project, opened, answers))
            if usual.needed(plan.checks):
                needs = replace(needs, baselines=self.usual.of(session, project, {(t.environment.id, t.environment.version) for t in read}))
        assessed = checks_engine.run(plan.checks, read, needs)
        return [
            Audited(
                o.claim,
                o.subject,
                trajectory.header,
                o.declaration,
                content,
                plan.spread(assessment, grouped=_grouped(o.subject)),
                len(o.added),
                subjects.state_of(trajectory.header, o.subject.task),
                answer,
            )
            for o, trajectory, content, answer, assessment in zip(opened, read, contents, answers, assessed, strict=True)
        ]

    def _damaged(self, claim: Claim, subject: Subject, reason: str, plan: Plan) -> Audited:
        log.error("damaged trajectory", trajectory=str(subject.key), reason=reason)
        unknown = EnvironmentRef(id="unknown/unknown", version="0")
        header = Header(id=subject.id, environment=unknown, task=TaskRef(id="unknown"), reward=subject.reward)
        return Audited(claim, subject, header, UNDECLARED, None, plan.all_erred(reason, grouped=_grouped(subject)))

    def honest_means(self, session: Session, audited: Sequence[Audited]) -> Callable[[Audited], float | None]:
        """The mean of what honest work earns where each of these was made."""
        suspects = [a.subject for a in audited if a.assessment.findings]
        known: dict[tuple[int, int], tuple[int, float]] = {}
        for project in {s.project for s in suspects}:
            found = environments.honest_means(session, project, {s.environment_version for s in suspects if s.project == project})
            known |= {(project, version): counted for version, counted in found.items()}

        def mean(a: Audited) -> float | None:
            count, total = known.get((a.subject.project, a.subject.environment_version), (0, 0.0))
            return self.policy.honest_mean(total, count, a.declaration)

        return mean

    # --- closing ---------------------------------------------------------------------------------------------------

    def _close(self, claims: Sequence[Claim], judged: Sequence[Judged]) -> Closing:
        """Close a block; again where another audit of one of its trajectories was closed at the same moment, or the database went away."""
        for _ in range(CLOSINGS - 1):
            try:
                return self._close_once(claims, judged)
            except (AlreadyThere, Unavailable) as error:
                log.warning("closing again", reason=str(error))
            except Revoked as error:
                log.info("judging again", reason=str(error))
                judged = self._judge_again(judged)
        return self._close_once(claims, judged)

    def _close_once(self, claims: Sequence[Claim], judged: Sequence[Judged]) -> Closing:
        """One transaction: what is still ours is written, with the feed's numbers last."""
        with transaction(self.engine) as session:
            held = work.close(session, claims)
            if len(held) < len(claims):
                log.warning("lease lost", subjects=len(claims) - len(held))
            ours = self._up_to_date(session, [j for j in judged if j.audited.claim.id in held])
            earlier = verdicts.replace(session, [j.audited.subject.key for j in ours]) if ours else {}
            self._count_members(session, ours, earlier)
            entries, watches, events = self.write(session, ours, earlier)
            sampling.sample(session, [j.audited for j in ours], self.pace.replays)
            sampling.spot_check(session, [j.audited for j in ours], self.pace.spot_checks)
            mine = [c for c in claims if c.id in held]
            entries = with_groups(entries, group_work.decide(session, self.policy, mine, late=partial(self._has_late, session), events=events))
            promised = look_back.promise(session, [j.audited for j in ours if look_back.is_new(j.audited, earlier.get(j.audited.subject.key))])
            due = standings.count(session, events)
            log_all(session, entries, ours)
        return Closing(
            projects={j.audited.subject.project for j in ours} | set(entries),
            watches=watches,
            promised=promised,
            groups=any(c.group is not None for c in mine),
            due=due,
        )

    def _judge_again(self, judged: Sequence[Judged]) -> list[Judged]:
        self.plans.forget()
        with transaction(self.engine) as session:
            audited = [j.audited for j in judged]
            means = self.honest_means(session, audited)
            plans = [self.plans.of(session, a.subject.project, a.subject.selection) for a in audited]
        return [self.judged(j.audited, plan, means(j.audited), j.belief) for j, plan in zip(judged, plans, strict=True)]

    def _has_late(self, session: Session, project: int, selection: int) -> bool:
        return bool(self.plans.of(session, project, selection).late)

    def _up_to_date(self, session: Session, judged: Sequence[Judged]) -> list[Judged]:
        """Without those to which something was added after they were read: its own audit was asked for, and may have been closed already."""
        added = patches.of(session, [j.audited.subject.key for j in judged])
        return [j for j in judged if j.audited.added is None or len(added.get(j.audited.subject.key, ())) == j.audited.added]

    def write(self, session: Session, judged: Sequence[Judged], earlier: Mapping[UUID, NewVerdict]) -> Written:
        """Store what was judged in the place of what was said earlier, and say what of it belongs into the feeds."""
        if not judged:
            return Written({}, [], [])
        judged = self._held(session, regrades.settled(session, judged))
        run_ids = {j.audited.subject.run for j in judged if j.audited.subject.run is not None}
        now = Circumstances(runs.modes(session, run_ids), runs.stopped(session, run_ids), self.pace.hold_s)
        rows = {key: counting.counted(j, deciding.verdict_row(j, earlier.get(key)), earlier.get(key), now) for j in judged for key in [j.audited.subject.key]}
        counting.learn(session, judged, rows, earlier)
        verdicts.add(session, list(rows.values()), [row for j in judged if j.audited.assessment.findings for row in deciding.finding_rows(j)])
        acted = [j for j in judged if j.judgement.action is not Action.KEEP]
        stopped, watches = stops.review(session, self.policy, acted, share=self.pace.stop_share, window=self.pace.stop_window) if acted else ([], [])
        for stop in stopped:
            log.warning("enforcement stopped", run=stop.run, check=stop.check, share=stop.share)
        if stopped:
            now = now._replace(stopped=runs.stopped(session, run_ids))
        entries: Entries = {}
        for j in judged:
            key = j.audited.subject.key
            entry = deciding.feed_entry(j, rows[key], earlier.get(key), now, j.author or f"policy:{j.belief.name}")
            if entry is not None:
                entries.setdefault(j.audited.subject.project, []).append(entry)
        return Written(entries, watches, counting.events(judged, rows, earlier))

    @staticmethod
    def _held(session: Session, judged: Sequence[Judged]) -> Sequence[Judged]:
        waiting = {(j.audited.subject.project, j.audited.subject.task) for j in judged if Outcome.PENDING in j.audited.assessment.outcomes}
        standing = states.of_tasks(session, waiting) if waiting else {}
        return [deciding.held(j, standing) if Outcome.PENDING in j.audited.assessment.outcomes else j for j in judged] if standing else judged

    @staticmethod
    def _count_members(session: Session, judged: Sequence[Judged], earlier: Mapping[UUID, NewVerdict]) -> None:
        """Members of groups, and the groups that are to be decided; a second audit of a member counts it no second time."""
        members: dict[int, int] = {}
        for j in judged:
            subject = j.audited.subject
            if subject.group_id is not None:  # of a second audit its group is decided anew, but not before it is complete
                members[subject.group_id] = members.get(subject.group_id, 0) + (subject.key not in earlier)
        projects = {j.audited.subject.group_id: j.audited.subject.project for j in judged}
        work.add_groups(session, sorted((projects[group], group) for group in groups.count_audited(session, members)))


def log_all(session: Session, entries: Entries, judged: Sequence[Judged]) -> None:
    """Log each project's entries, last in the transaction; raises Revoked where a check was taken back since these were judged."""
    after: dict[int, int] = {}
    for j in judged:
        project = j.audited.subject.project
        after[project] = min(after.get(project, j.plan.revocations), j.plan.revocations)
    for project in sorted(entries):
        decisions.append(session, project, entries[project], judged_after=after.get(project))


def with_groups(entries: Entries, of_groups: Entries) -> Entries:
    """One decision of a trajectory a transaction: its group's comes last."""
    joined = dict(entries)
    for project, decided in of_groups.items():
        together = {entry.key for entry in decided}
        joined[project] = [entry for entry in entries.get(project, []) if entry.key not in together] + decided
    return joined


def _unknown(audited: Audited) -> float | None:
    return None  # nobody asks where nothing was found


def _grouped(subject: Subject) -> bool:
    return subject.group_id is not None
