"""Gives back what is out because of its verifier, once a repaired one has graded its final state."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from sqlmodel import Session

from inspector.audit.deciding import Judged
from inspector.store import regrades
from inspector.store.regrades import Regraded
from inspector.verdict import Action, Cause, Judgement, Verdict

AUTHOR = "regraded"
TOLERANCE = 0.01  # relative, as of a replay


def settled(session: Session, judged: Sequence[Judged]) -> Sequence[Judged]:
    """The same, with the repaired verifier's reward in the place of an exclusion for the broken one's fault."""
    suspects = [j.audited.subject.key for j in judged if j.judgement.cause is Cause.VERIFIER_DEFECT and j.judgement.verdict is Verdict.QUARANTINE]
    found = regrades.of(session, suspects) if suspects else {}
    return [_settled(j, found[j.audited.subject.key]) if j.audited.subject.key in found else j for j in judged] if found else judged


def _settled(judged: Judged, regraded: Regraded) -> Judged:
    reward, by = regraded.rewards[0], f"{regraded.environment}@{regraded.version}"
    if any(_differ(reward, again) for again in regraded.rewards):
        return judged
    return judged._replace(judgement=_judgement(judged, reward, f"its final state was graded again by {by}: {reward:g}"), author=f"{AUTHOR}:{by}")


def _judgement(judged: Judged, reward: float, reason: str) -> Judgement:
    posted, reasons = judged.audited.subject.reward, (*judged.judgement.reasons, reason)
    if posted is not None and not _differ(posted, reward):
        return msgspec.structs.replace(judged.judgement, verdict=Verdict.FLAG, action=Action.KEEP, reward_override=None, retry=False, reasons=reasons)
    return msgspec.structs.replace(judged.judgement, action=Action.OVERRIDE_REWARD, reward_override=reward, retry=False, reasons=reasons)


def _differ(one: float, other: float) -> bool:
    return abs(one - other) > TOLERANCE * max(1.0, abs(one))
