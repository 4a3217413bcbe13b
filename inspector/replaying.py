"""Replays as a service: sampled final states are handed to sandbox workers, and a verifier that contradicts itself is told of."""

from __future__ import annotations

from collections.abc import Sequence

from sqlmodel import Session

from inspector import quarantine
from inspector.assignments import Assignment, PackageOfWork, Regrade, ReplayReport
from inspector.errors import BadSubmission
from inspector.quarantine import Move
from inspector.showable import showable
from inspector.standing import Why
from inspector.store import decisions, packages, replays, standings, work
from inspector.store.replays import MOST_CLAIMS, Replay
from inspector.task import State

AUTHOR = "policy:replay"
ESCALATED = 9  # gradings in all, once one disagrees
TOLERANCE = 0.01  # relative
NOTE_CHARS = 300
OPEN, CLOSED = "open", "closed"


def claim(session: Session, lease_s: float) -> Assignment | None:
    """Lease what waits longest; None where nothing does. What ended too many workers is closed on the way."""
    while (held := replays.claim(session, lease_s)) is not None:
        if held.claims <= MOST_CLAIMS:
            return _assignment(session, held, lease_s)
        _close(session, held, held.rewards, "its worker died three times")
    return None


def _assignment(session: Session, held: Replay, lease_s: float) -> Assignment:
    environment, version, task = replays.about(session, held)
    package = packages.of(session, replays.graded_by(held)).package
    return Assignment(
        work=held.id,
        lease=held.lease,
        lease_s=lease_s,
        probe=None,
        environment=environment,
        version=version,
        depth="",
        task=task,
        package=PackageOfWork(sha256=package.sha256, face=package.face, entry=package.entry, dataset=package.dataset),
        replay=Regrade(state=held.state, times=held.wanted - len(held.rewards)),
    )


def renew(session: Session, id_: int, lease: int, lease_s: float) -> str:
    """The heartbeat. Raises Unknown and Conflict."""
    replays.extend(session, replays.held(session, id_, lease), lease_s)
    return OPEN


def report(session: Session, id_: int, lease: int, said: ReplayReport) -> str:
    """Keep what was paid; where it first disagrees with what was posted, more gradings are wanted. Raises Unknown, Conflict and BadSubmission."""
    held = replays.held(session, id_, lease)
    left = held.wanted - len(held.rewards) - len(said.rewards)
    if left < 0 or (left > 0) is (said.failure is None):
        raise BadSubmission(f"{held.wanted - len(held.rewards)} rewards were asked for; where there are fewer, `failure` says why", path="$.rewards")
    rewards = [*held.rewards, *said.rewards]
    if said.failure is None and held.grader is None and held.wanted < ESCALATED and _disagrees(held.posted, rewards):
        replays.keep(session, held, rewards, ESCALATED, "", closed=False)
        return OPEN
    _close(session, held, rewards, showable(said.failure or "", limit=NOTE_CHARS))
    return CLOSED


def _close(session: Session, held: Replay, paid: Sequence[float], note: str) -> None:
    replays.keep(session, held, paid, held.wanted, note, closed=True)
    work.add_trajectories(session, held.project, [held.key])
    if held.grader is not None:  # it says what the trajectory is worth, and nothing of its own version's verifier
        return
    if paid:
        standings.replayed(session, held.environment_version, held.task, clean=not _disagrees(held.posted, paid))
    if paid and _disagrees(paid[0], paid):  # last: it takes the feeds
        _watch(session, held, paid)


def _watch(session: Session, held: Replay, paid: Sequence[float]) -> None:
    """The verifier pays the same state differently: its task is flaky."""
    environment, version, task = replays.about(session, held)
    told = ", ".join(f"{each:g}" for each in paid)
    move = Move(task, State.WATCH, f"flaky: the same final state was graded with {told} (/v1/trajectories/{held.key})", Why.REPLAYS)
    decisions.notify(session, quarantine.move_tasks(session, environment, version, [move], author=AUTHOR, since=held.sampled_at))


def _disagrees(reward: float, others: Sequence[float]) -> bool:
    return any(abs(other - reward) > TOLERANCE * max(1.0, abs(reward)) for other in others)
