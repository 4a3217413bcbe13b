"""What one worker process opens once: the database, the segments, the checks, the policy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

import structlog
from celery import Celery
from sqlalchemy import Engine

from inspector import catalog, learning, logs, policy, probing, quarantine, queue, regrading, retention, settling
from inspector.anomaly.fitting import fit_apart
from inspector.audit import Auditor, LateAuditor, Pace, look_back
from inspector.audit.sampling import Shares
from inspector.audit.stops import Watch
from inspector.contamination import advise_due
from inspector.errors import Unavailable
from inspector.news import News
from inspector.queue import Doorbell
from inspector.retention import Keeping
from inspector.settings import Settings, load
from inspector.standing import DEFAULT
from inspector.store import groups, look_backs, probe_work, replays, work
from inspector.store.notices import Waker
from inspector.store.segments import SegmentReader
from inspector.store.session import connect, transaction
from inspector.store.work import Lane
from inspector.webhooks.ringing import Ringer

log = structlog.get_logger()
FIT_S = 120.0  # that the fit of one model may take
LONGEST_HOLD_S = 30.0  # a trainer is never asked to wait for longer


@dataclass
class House:
    """The parts, wired."""

    settings: Settings
    engine: Engine
    auditor: Auditor
    late: LateAuditor
    bell: Doorbell
    late_bell: Doorbell
    probe_bell: Doorbell
    waker: News

    @classmethod
    def open(cls, celery: Celery, settings: Settings | None = None, *, alarms: bool = True) -> House:
        """Open everything from the settings of the environment."""
        settings = settings or load()
        logs.configure(settings.log_level)
        engine = connect(settings.database_url, pool_size=2)
        pace = Pace(
            lease_s=settings.lease_s,
            heartbeat_s=settings.heartbeat_s,
            deadline_s=settings.fast_deadline_s,
            late_deadline_s=settings.late_deadline_s,
            hold_s=min(settings.hold_s, LONGEST_HOLD_S),
            stop_share=settings.enforcement_stop_share,
            stop_window=settings.enforcement_stop_window,
            replays=Shares(settings.replay_paid_share, settings.replay_unpaid_share),
            spot_checks=settings.spot_check_share,
        )
        reader = SegmentReader(settings.store_path)
        ringer = Ringer(engine, Doorbell(celery, settings.redis_url, queue.DELIVER))
        waker = News(settings.redis_url, Waker(settings.database_url), ringer.ring_for)
        bell, late_bell = (Doorbell(celery, settings.redis_url, task) for task in (queue.AUDIT, queue.LATE))
        probe_bell = Doorbell(celery, settings.redis_url, queue.PROBE, expires_s=queue.PROBE_BELL_S)
        auditor = Auditor(
            engine,
            reader,
            catalog.load(),
            policy.load(settings.policy_file),
            pace,
            wake=lambda projects: waker.wake(projects | advised(engine, settings.rollback_share)),
            watch=lambda watched: put_on_watch(engine, waker, watched),
            late=late_bell.ring,
            settle=lambda: settle(engine, waker, settings.fleet_share),
            alarms=alarms,
        )
        return cls(settings, engine, auditor, LateAuditor(auditor), bell, late_bell, probe_bell, waker)

    def close(self) -> None:
        """End every connection."""
        self.waker.close()
        self.engine.dispose()

    def regrade(self) -> None:
        """Have more of what a broken verifier spoiled graded by the repaired one, as its owner asked."""
        if regrading.advance(self.engine, self.auditor.reader):
            self.probe_bell.ring()

    def retain(self) -> None:
        """Forget what is older than the operator keeps."""
        keeping = Keeping(self.settings.feed_horizon, self.settings.retain_days)
        gone = retention.forget(self.engine, self.settings.store_path, keeping, datetime.now(UTC))
        if any(gone):
            log.info("forgotten", **gone._asdict())

    def learn(self) -> None:
        """Fit what is ordinary anew, where enough came since; the fit itself has a process of its own."""
        learning.learn_due(self.engine, self.auditor.reader, partial(fit_apart, limit_s=FIT_S))

    def calibrate(self) -> None:
        """Fit probabilities anew where people judged enough."""
        from inspector import calibrating  # here: scipy weighs more than the rest of a worker

        calibrating.calibrate_due(self.engine, self.auditor.policy)

    def sweep(self) -> None:
        """Close groups that nothing comes to any more, ring where anything waits, and close late checks that are overdue."""
        with transaction(self.engine) as session:
            work.add_groups(session, groups.close_quiet(session, self.settings.group_quiet_s))
            look_back.keep(session, look_backs.left(session, self.settings.lease_s))
        with transaction(self.engine) as session:
            waiting = {bell: work.waiting(session, bound=1, lane=lane) for bell, lane in ((self.bell, Lane.FAST), (self.late_bell, Lane.LATE))}
            probes_wait = probe_work.may_be_claimed(session) or replays.may_be_claimed(session)
        for bell, found in waiting.items():
            if found.waiting > 0 or found.overdue > 0:
                bell.ring()
        if probes_wait:
            self.probe_bell.ring()
        self.waker.wake(advised(self.engine, self.settings.rollback_share))
        settle(self.engine, self.waker, self.settings.fleet_share)
        self.regrade()
        self.late.give_up()  # last: where one group fails here, the bells are rung all the same


def advised(engine: Engine, share: float) -> set[int]:
    """The projects of which runs were advised to go back; where the database is away, the next sweep looks."""
    try:
        return advise_due(engine, share=share)
    except Unavailable:
        log.warning("no run was advised: the database is away")
        return set()


def settle(engine: Engine, waker: News, fleet_share: float) -> None:
    """Move what its evidence asks to move, and wake those who wait for it. What is missed here the sweep finds."""
    try:
        if told := settling.settle(engine, replace(DEFAULT, fleet_share=fleet_share)):
            waker.wake(told)
    except Unavailable:
        log.warning("states were not looked at: the database is away")


def put_on_watch(engine: Engine, waker: News, watched: Watch) -> None:
    """A check that rests on facts caused too large a share of a run's decisions: its environment is watched, and probed where it can be."""
    reason = f"{watched.check} caused {watched.share:.0%} of a run's last decisions"
    try:
        with transaction(engine) as session:
            told = quarantine.watch(session, watched.environment, watched.version, reason)
            if told:
                probing.ask_unasked(session, watched.environment, watched.version, reason)
    except Unavailable:
        log.warning("not put on watch: the database is away", environment=watched.environment)
        return
    if told:
        waker.wake(set(told))


__all__ = ["House", "put_on_watch"]
