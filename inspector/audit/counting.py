"""What is learnt from verdicts: the rewards of honest work, and confirmed exploits.

Each trajectory counts once, by what stands for it: its row remembers what it was counted as, so another audit, as after a
reward that came later, changes only what became different.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from sqlmodel import Session

from inspector.audit.deciding import Judged
from inspector.store import environments
from inspector.store.verdicts import Counted, NewVerdict
from inspector.verdict import Verdict

Rows = Mapping[UUID, NewVerdict]


def counted(judged: Judged, row: NewVerdict) -> NewVerdict:
    """The row with what it counts as."""
    honest = row.verdict == Verdict.ACCEPT and judged.audited.subject.reward is not None
    exploit = judged.judgement.confirmed_exploit and row.verdict == Verdict.QUARANTINE  # unless a person says otherwise
    return row._replace(counted=Counted.HONEST * honest | Counted.EXPLOIT * exploit)


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
