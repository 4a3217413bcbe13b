"""Probes as a service: asked for by owners, worked on by sandbox workers, and obeyed by the states of tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

import msgspec
import structlog
from sqlmodel import Session

from inspector import quarantine
from inspector.assignments import Assignment, Listing, PackageOfWork, WorkReport
from inspector.errors import BadSubmission, Conflict, Forbidden
from inspector.probe import causes
from inspector.probe.words import Outcome, TaskReport
from inspector.quarantine import Move
from inspector.showable import showable
from inspector.store import decisions, environments, packages, probe_work, probes, states, work
from inspector.store.packages import Package
from inspector.store.probe_work import MOST_CLAIMS, Work
from inspector.store.probes import OVER, Asked, Budget, Priority, Probe, ProbeState
from inspector.task import State

log = structlog.get_logger()
AUTHOR = "policy:probe"
STATES = {
    Outcome.UNSOLVABLE: State.QUARANTINED,
    Outcome.TRIVIALLY_PASSABLE: State.QUARANTINED,
    Outcome.EXPLOITABLE: State.QUARANTINED,
    Outcome.WEAK_VERIFIER: State.WATCH,
    Outcome.FALSE_REJECTING: State.WATCH,
    Outcome.FLAKY: State.WATCH,
}
SUSPECT = frozenset({Outcome.UNSOLVABLE, Outcome.TRIVIALLY_PASSABLE, Outcome.EXPLOITABLE, Outcome.FLAKY})  # what was paid or refused there means little
UNASKED = Asked("quick", None, Priority.PROBE, Budget(wall_s=3600.0))
AGAIN_PRIORITY = 10  # of another audit; new trajectories go first
AGAIN_MOST = 10_000  # trajectories of one task, the newest
CLAIM_CHARS = 300
DIED = f"its worker died {('', 'once', 'twice', 'three times')[MOST_CLAIMS]}"


def register(session: Session, project: int, environment_version: int, package: Package) -> bool:
    """Say what a version is made of; False where it was said before. Its owner is to be asked for before, and who registers it first owns it."""
    new = packages.put(session, environment_version, project, package)
    if environments.own(session, project, environment_version):
        decisions.announce(session, project, states.of_version(session, project, environment_version), "registered it")
    return new


def ask(session: Session, project: int, environment: str, version: str, asked: Asked) -> UUID:
    """Ask for a probe of a version that this project registered. Raises Unknown and Forbidden."""
    environment_version = environments.find(session, project, environment, version)
    if packages.of(session, environment_version).project != project:
        raise Forbidden(f"another project registered {environment}@{version}, and alone may ask for probes of it")
    return probes.add(session, project, environment_version, asked)


def ask_unasked(session: Session, environment: str, version: str, why: str, *, task: str | None = None) -> UUID | None:
    """Ask for a probe of a version, or of one task, of which something odd was seen; None where nobody registered it, or one is under way."""
    environment_version = environments.find(session, None, environment, version)
    environments.lock(session, environment_version)  # of two who saw it at once one asks
    owner = packages.owner_of(session, environment_version)
    if owner is None or probes.under_way(session, environment_version):
        return None
    made = probes.add(session, owner, environment_version, UNASKED if task is None else UNASKED._replace(tasks=[task]))
    probe_work.add_note(session, made, f"asked for by the service: {showable(why, limit=CLAIM_CHARS)}")
    log.info("probe asked for", probe=str(made), environment=environment, version=version, task=task, why=why)
    return made


def cancel(session: Session, project: int, probe: UUID) -> None:
    """End a probe before its next task; what is being probed is still reported. Raises Unknown and Conflict."""
    found = probes.find(session, project, probe, lock=True)
    if found.state in OVER:
        raise Conflict(f"the probe is {found.state.value} already")
    probe_work.end(session, probe, ProbeState.CANCELLED)
    probe_work.drop_waiting(session, probe)
    _finish_where_all_is_closed(session, probe)


# --- workers ---------------------------------------------------------------------------------------------------------


def claim(session: Session, lease_s: float) -> Assignment | None:
    """Lease what is due first; None where nothing is. What ended too many workers, or whose probe is over, is closed on the way."""
    while (held := probe_work.claim(session, lease_s)) is not None:
        if probe_work.state_of(session, held.probe, starting=held.claims <= MOST_CLAIMS) in OVER:
            probe_work.close(session, held)
            _finish_where_all_is_closed(session, held.probe)
        elif held.claims > MOST_CLAIMS:
            _failed(session, held, DIED)
        else:
            return _assignment(session, held, lease_s)
    return None


def _assignment(session: Session, held: Work, lease_s: float) -> Assignment:
    probe = probes.find(session, None, held.probe)
    package = packages.of(session, probe.environment_version).package
    return Assignment(
        work=held.id,
        lease=held.lease,
        lease_s=lease_s,
        probe=probe.id,
        environment=probe.environment,
        version=probe.version,
        depth=probe.asked.depth,
        task=held.task,
        package=PackageOfWork(sha256=package.sha256, face=package.face, entry=package.entry, dataset=package.dataset),
    )


def renew(session: Session, work_id: int, lease: int, lease_s: float) -> ProbeState:
    """The heartbeat: what is ours stays ours for another lease. Raises Unknown and Conflict."""
    held = probe_work.held(session, work_id, lease)
    probe_work.extend(session, held, lease_s)
    return probes.find(session, None, held.probe).state


def report(session: Session, work_id: int, lease: int, said: WorkReport) -> ProbeState:
    """Close a work with what its worker says. Raises Unknown, Conflict, and BadSubmission where it is no answer to the work."""
    held = probe_work.held(session, work_id, lease)
    probe_work.state_of(session, held.probe)
    if [said.listing, said.task, said.failure].count(None) != 2:
        raise BadSubmission("give one of listing, task and failure", path="$")
    if said.failure is not None:
        _failed(session, held, showable(said.failure, lines=True))
    elif held.task is None and said.listing is not None:
        _listed(session, held, said.listing)
    elif said.task is not None and said.task.task == held.task:
        _probed(session, held, said.task)
    else:
        raise BadSubmission(f"work {work_id} is {'to list tasks' if held.task is None else f'about task {held.task!r}'}", path="$")
    return probe_work.state_of(session, held.probe)


def _failed(session: Session, held: Work, reason: str) -> None:
    if held.task is None:
        probe_work.close(session, held)
        probe_work.end(session, held.probe, ProbeState.FAILED, reason)
    else:
        _probed(session, held, unassessed(held.task, reason))


def unassessed(task: str, reason: str) -> TaskReport:
    """The report of a task that was not probed."""
    return TaskReport(task=task, outcomes=(Outcome.NOT_ASSESSED,), notes=(reason,))


def _listed(session: Session, held: Work, listing: Listing) -> None:
    """Make the tasks that were asked for wait."""
    probe = probes.find(session, None, held.probe)
    hints = msgspec.json.encode(listing.hints)
    packages.learn(session, probe.environment_version, listing.content_version, listing.verifier_digest, hints, one_verifier=listing.one_verifier)
    probe_work.close(session, held)
    for note in listing.notes:
        probe_work.add_note(session, held.probe, showable(note, limit=1000))
    wanted = list(dict.fromkeys(listing.tasks if probe.asked.tasks is None else [task for task in listing.tasks if task in set(probe.asked.tasks)]))
    if missing := [task for task in probe.asked.tasks or () if task not in set(listing.tasks)]:
        probe_work.add_note(session, held.probe, f"no such tasks: {showable(', '.join(missing), limit=1000)}")
    if not wanted:
        probe_work.end(session, held.probe, ProbeState.FAILED, "there is no task to probe")
    elif probe.state not in OVER:
        ids = environments.ensure_tasks(session, [(probe.environment_version, task) for task in wanted])
        probe_work.list_tasks(session, held.probe, [ids[probe.environment_version, task] for task in wanted])


# --- what is said of tasks -------------------------------------------------------------------------------------------


def _probed(session: Session, held: Work, said: TaskReport) -> None:
    """Keep what is said of a task, and act on it; what may be our own fault waits until all of the probe is seen."""
    assert held.task_id is not None, "a listing has no report of a task"
    probe_work.close(session, held, [outcome.value for outcome in said.outcomes], msgspec.json.encode(said))
    probe_work.spend(session, held.probe, max(0.0, said.cpu_s), max(0.0, said.wall_s))
    probe = probes.find(session, None, held.probe)
    probe_work.remember(session, probe.environment_version, [held.id])
    _keep_within_budget(session, probe)
    if Outcome.UNSOLVABLE not in said.outcomes:
        _act(session, probe, [(held.task_id, said)])
    _finish_where_all_is_closed(session, held.probe)


def _keep_within_budget(session: Session, probe: Probe) -> None:
    spent = [
        f"the budget of {budget:g} s {what} is spent"
        for what, budget, used in zip(("of CPU", "on the clock"), probe.asked.budget, probe.spent, strict=True)
        if budget is not None and used is not None and used >= budget
    ]
    if not spent:
        return
    if waiting := [(held, held.task) for held in probe_work.drop_waiting(session, probe.id) if held.task is not None]:
        reports = [msgspec.json.encode(unassessed(task, spent[0])) for _, task in waiting]
        dropped = [held for held, _ in waiting]
        probe_work.close_all(session, dropped, [Outcome.NOT_ASSESSED.value], reports)
        probe_work.spend(session, probe.id, 0.0, 0.0, closed=len(dropped))
        probe_work.remember(session, probe.environment_version, [held.id for held in dropped])
        probe_work.add_note(session, probe.id, spent[0])


def _finish_where_all_is_closed(session: Session, probe_id: UUID) -> None:
    if probe_work.open_left(session, probe_id):
        return
    _settle_unsolvable(session, probes.find(session, None, probe_id))
    probe_work.end(session, probe_id, ProbeState.DONE)


def _settle_unsolvable(session: Session, probe: Probe) -> None:
    """Where every task fails alike our own set-up is the first suspect, and nothing is held against the tasks."""
    rows = probe_work.with_outcome(session, probe.id, Outcome.UNSOLVABLE.value)
    said = [(task_id, msgspec.json.decode(body, type=TaskReport)) for _, _, task_id, body in rows]
    if rows and len(rows) == probe_work.assessed(session, probe.id):
        one_verifier = packages.of(session, probe.environment_version).one_verifier
        judged, notes = causes.suspect_ourselves([one for _, one in said], one_verifier=one_verifier)
        for (held, *_), before, after in zip(rows, (one for _, one in said), judged, strict=True):
            if after is not before:
                probe_work.rewrite(session, held, [outcome.value for outcome in after.outcomes], msgspec.json.encode(after))
        probe_work.remember(session, probe.environment_version, [held for held, *_ in rows])
        for note in notes:
            probe_work.add_note(session, probe.id, showable(note, limit=1000))
        said = [(task_id, after) for (task_id, _), after in zip(said, judged, strict=True)]
    _act(session, probe, said)


def _act(session: Session, probe: Probe, said: Sequence[tuple[int, TaskReport]]) -> None:
    """Move the states of tasks, and have what was kept of them audited again."""
    moves = [move for _, one in said if (move := move_of(one, probe.id)) is not None]
    suspects = [task for task, one in said if SUSPECT & set(one.outcomes)]
    if suspects:
        for project, keys in probes.kept(session, suspects, AGAIN_MOST).items():
            work.add_trajectories(session, project, keys, priority=AGAIN_PRIORITY)
    if moves:  # last: it takes the feeds
        told = quarantine.move_tasks(session, probe.environment, probe.version, moves, author=AUTHOR, since=probe.asked_at)
        decisions.notify(session, told)


def move_of(said: TaskReport, probe: UUID) -> Move | None:
    """Where the outcomes of a task put it; None where they put it nowhere."""
    moving = [outcome for outcome in STATES if outcome in said.outcomes]  # the gravest come first
    if not moving:
        return None
    return Move(said.task, STATES[moving[0]], f"{moving[0].value}: {_claim(said, moving[0])} (/v1/probes/{probe})")


def _claim(said: TaskReport, outcome: Outcome) -> str:
    claims: Iterable[str] = (evidence.claim for evidence in said.evidence if evidence.outcome is outcome)
    return showable(next(iter(claims), "no claim was given"), limit=CLAIM_CHARS)
