"""What is learnt from verdicts: the rewards of honest work, confirmed exploits, and what speaks against a task.

Each trajectory counts once, by what stands for it: its row remembers what it was counted as, so another audit, as after a
reward that came later, changes only what became different.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from sqlmodel import Session

from inspector.audit.deciding import Circumstances, Judged
from inspector.standing import Seen
from inspector.store import environments
from inspector.store.codes import cause_of
from inspector.store.standings import Event, How
from inspector.store.verdicts import FAULTS, Counted, NewVerdict
from inspector.verdict import Action, Cause, Mode, Verdict

Rows = Mapping[UUID, NewVerdict]


def counted(judged: Judged, row: NewVerdict, earlier: NewVerdict | None, now: Circumstances) -> NewVerdict:
    """The row with what it counts as."""
    sampled = _sampled(judged) or bool(earlier is not None and earlier.counted & Counted.SAMPLED)
    honest = row.verdict == Verdict.ACCEPT and judged.audited.subject.reward is not None
    fault = _fault(judged, row, now, sampled=sampled) if row.verdict == Verdict.QUARANTINE else 0
    return row._replace(counted=Counted.HONEST * honest | fault | Counted.SAMPLED * sampled | Counted.EPISODE)


def _sampled(judged: Judged) -> bool:
    rate = judged.audited.header.sampled
    return rate is not None and rate < 1.0


def _fault(judged: Judged, row: NewVerdict, now: Circumstances, *, sampled: bool) -> int:
    """What is held against its task and environment version."""
    subject, judgement = judged.audited.subject, judged.judgement
    if judgement.confirmed_exploit:
        return Counted.EXPLOIT
    if judgement.action is Action.OVERRIDE_REWARD and judgement.cause is not Cause.VERIFIER_DEFECT and not row.by_person:
        if judgement.reward_override == subject.reward:
            return 0  # it earned nothing
        heeded = now.mode(subject.run) is Mode.ENFORCE and now.enforced(subject.run, judged.deciding)
        return Counted.NEUTRALISED if heeded and not sampled else Counted.EXPLOIT  # its twins that nobody looked at, or overrode, would win
    return _FAULTS.get(cause_of(row.cause), 0)


_FAULTS: Mapping[Cause | None, int] = {
    Cause.VERIFIER_DEFECT: Counted.DEFECT,
    Cause.ENVIRONMENT_DEFECT: Counted.DEFECT,
    Cause.INFRASTRUCTURE: Counted.BROKEN,
}


def learn(session: Session, judged: Sequence[Judged], rows: Rows, earlier: Rows) -> None:
    """Add what is new, and take back what no longer holds."""
    honest: dict[int, dict[int, tuple[int, float]]] = {}
    exploits: dict[int, int] = {}
    for j in judged:
        subject = j.audited.subject
        more = _change(subject.key, Counted.HONEST, rows, earlier)
        if more and subject.reward is not None:
            of_project = honest.setdefault(subject.project, {})
            count, total = of_project.get(subject.environment_version, (0, 0.0))
            of_project[subject.environment_version] = (count + more, total + more * subject.reward)
        if more := _change(subject.key, Counted.EXPLOIT, rows, earlier):
            exploits[subject.task] = exploits.get(subject.task, 0) + more
    for project in sorted(honest):
        environments.learn_honest(session, project, honest[project])
    environments.count_exploits(session, exploits)


def _change(key: UUID, kind: Counted, rows: Rows, earlier: Rows) -> int:
    before = earlier[key].counted if key in earlier else 0
    return bool(rows[key].counted & kind) - bool(before & kind)


def events(judged: Sequence[Judged], rows: Rows, earlier: Rows) -> list[Event]:
    """What each says of its task, where that is new."""
    found: list[Event] = []
    for j in judged:
        key = j.audited.subject.key
        before, after = earlier[key].counted if key in earlier else 0, rows[key].counted
        if not before & Counted.EPISODE:
            found.append(Event(j.audited.subject.task, _seen(after)))
        elif (before ^ after) & FAULTS:
            found += _corrected(j.audited.subject.task, before & FAULTS, after & FAULTS)
    return found


def _corrected(task: int, before: int, after: int) -> list[Event]:
    gone, come = _seen(before & ~after), _seen(after & ~before)
    return [Event(task, seen, how) for seen, how in ((gone, How.WITHDRAWN), (come, How.LATE)) if any(seen)]


def _seen(bits: int) -> Seen:
    exploit = bool(bits & Counted.EXPLOIT)
    return Seen(exploit or bool(bits & Counted.DEFECT), exploit, bool(bits & Counted.NEUTRALISED), bool(bits & Counted.BROKEN))
