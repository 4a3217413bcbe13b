"""Advises a run to go back to a checkpoint where bad trajectories carried too much of an update that its newest version descends from.

Bad are confirmed exploits and verifier defects that were used otherwise than was decided. What carried too much is
measured among the trajectories of the update that were posted: they speak for those that were not audited.
An incident is told once: again only where it reaches further back, or where another cause or environment carries too
much. It ends when the run went on from a clean version, or when nothing bad is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import Engine
from sqlmodel import Session

from inspector.contamination.lineage import line
from inspector.store import decisions, rollbacks, runs, used
from inspector.store.decisions import Numbered
from inspector.store.rollbacks import Advised
from inspector.store.session import transaction
from inspector.store.used import Update, Weighed
from inspector.verdict import Action, Cause, Decision, Rollback, Scope

AUTHOR = "policy:rollback"
AT_ONCE = 1000  # doubts that one transaction looks into


def advise_due(engine: Engine, *, share: float) -> set[int]:
    """Look at every update in doubt; the projects that were told something."""
    told: set[int] = set()
    while True:
        with transaction(engine) as session:
            doubted = used.doubted(session, AT_ONCE) if used.any_doubt(session) else {}
            for project in sorted(doubted):
                decisions.hold(session, project)
                for run, numbers in sorted(doubted[project].items()):
                    if look(session, project, run, sorted(set(numbers)), share=share):
                        told.add(project)
        if not doubted:
            return told


def look(session: Session, project: int, run: int, numbers: Sequence[int], *, share: float) -> bool:
    """Weigh these updates anew, and say what follows from it; whether anything was logged. The project's feed must be held."""
    _weigh(session, project, run, numbers, share)
    standing = rollbacks.standing(session, run)
    if standing is None and not used.any_heavy(session, run):
        return False
    path = line(used.updates(session, run))
    followed = standing is not None and all(update.number != standing.number for update in path)
    if standing is not None and followed:
        _end(session, project, run, standing, f"the run went on from version {path[-1].policy_before}")
        standing = None
    heavy = [update for update in path if update.heavy]
    if not heavy:
        if standing is not None:
            _end(session, project, run, standing, "what the advice rested on no longer stands")
        return followed or standing is not None
    goal = _goal(path, heavy[0])
    sources = sorted({source for update in heavy for source in update.sources})
    if standing is not None and standing.policy_version <= goal.policy_version and set(sources) <= set(standing.sources):
        return followed
    rollback = Rollback(
        policy_version=goal.policy_version,
        checkpoint=goal.checkpoint,
        last_clean=heavy[0].policy_before,
        first_step=heavy[0].step,
        last_step=heavy[-1].step,
        updates=len(heavy),
        undone=sum(update.number >= heavy[0].number for update in path),
        rows=sum(update.bad_rows for update in heavy),
        share=max(_share(update) for update in heavy),
        attempt=path[-1].attempt,
    )
    seq = _log(session, project, run, Action.ADVISE_ROLLBACK, _reason(rollback, sources), rollback, standing, sources)
    rollbacks.close(session, run)
    rollbacks.add(session, project, run, Advised(seq, heavy[0].number, goal.policy_version, sources))
    return True


class _Goal(NamedTuple):
    """Where to go back to; without a checkpoint the run begins anew."""

    policy_version: int
    checkpoint: str | None


def _goal(path: Sequence[Update], first: Update) -> _Goal:
    saved = [update for update in path if update.number < first.number and update.checkpoint is not None]
    return _Goal(saved[-1].policy_after, saved[-1].checkpoint) if saved else _Goal(path[0].policy_before, None)


def _weigh(session: Session, project: int, run: int, numbers: Sequence[int], share: float) -> None:
    used.recognise(session, project, run, numbers)
    known = used.known(session, run, numbers)
    bad = used.bad(session, run, numbers)
    weighed = []
    for number in numbers:
        limit = share * known.get(number, 0.0)
        own = [one for one in bad if one.number == number]
        total = sum(one.mass for one in own)
        heavy = total > limit
        alone = [one.source for one in own if one.mass > limit] if heavy else []
        sources = alone or ([one.source for one in own] if heavy else [])
        weighed.append(Weighed(number, known.get(number, 0.0), total, sum(one.rows for one in own), sources, heavy))
    used.weigh(session, run, weighed)


def _share(update: Update) -> float:
    return update.bad / update.known if update.known else 0.0


def _reason(rollback: Rollback, sources: Sequence[str]) -> str:
    steps = f"update {rollback.first_step}" if rollback.updates == 1 else f"{rollback.updates} updates from {rollback.first_step} to {rollback.last_step}"
    return f"{steps} drew up to {rollback.share:.1%} of the absolute reward from {'; '.join(sources)}"


def _end(session: Session, project: int, run: int, standing: Advised, reason: str) -> None:
    """Said aloud: a trainer that starts from an old place in the feed must not take it for standing advice."""
    _log(session, project, run, Action.KEEP, reason, None, standing, standing.sources)
    rollbacks.close(session, run)


def _log(
    session: Session, project: int, run: int, action: Action, reason: str, rollback: Rollback | None, standing: Advised | None, sources: Sequence[str]
) -> int:
    name, mode = runs.names(session, [run])[run], runs.modes(session, [run])[run]
    causes = {source.split(" ", 1)[0] for source in sources}
    decision = Decision(
        seq=0,
        scope=Scope.RUN,
        action=action,
        cause=Cause(causes.pop()) if len(causes) == 1 and action is Action.ADVISE_ROLLBACK else None,
        run=name,
        final=True,
        author=AUTHOR,
        mode=mode,
        rollback=rollback,
        reasons=(reason,),
        evidence=(f"/v1/runs/{name}/contamination?what=proved",) if rollback is not None else (),
        supersedes=standing.seq if standing is not None else None,
        decided_at=datetime.now(UTC),
    )
    return decisions.append(session, project, [Numbered(decision, None)])
