"""What becomes of a group once each of its rows was judged."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from inspector.verdict import Action, Cause, Impact, Judgement


class GroupJudgement(msgspec.Struct, frozen=True, kw_only=True):
    """Of a whole group, above its rows' own."""

    action: Action  # keep: the rows' own actions stand; exclude: none of its rows is to be used
    reason: str = ""
    confirmed_exploits: tuple[int, ...] = ()  # positions of the overrides that count against the task after all
    retry: bool = False  # new rollouts may succeed: rows are missing by nobody's doing
    impact: Impact | None = None  # where a row is out or has another reward


def judge_group(judgements: Sequence[Judgement], rewards: Sequence[float | None]) -> GroupJudgement:
    """Rows and their rewards as posted, in one order.

    A group that no decision changed is left alone, also where it was all equal from the start, and so is one that still
    waits for a row. Rows that were excluded as confirmed exploits count by their own judgement.
    """
    paired = list(zip(judgements, rewards, strict=True))
    actions = {judgement.action for judgement in judgements}
    if Action.HOLD in actions or actions <= {Action.KEEP}:
        return GroupJudgement(action=Action.KEEP)
    left = [used for judgement, reward in paired if (used := _used(judgement, reward)) is not None]
    lost = tuple(at for at, (judgement, reward) in enumerate(paired) if _took(judgement) and judgement.reward_override != reward)
    impact = Impact(rows=len(paired), left=len(left), zero_variance=len(set(left)) < 2)
    if len(left) < 2:
        reason = f"rows left with a reward: {len(left)} of {len(paired)}"
        retry = not lost and any(judgement.retry for judgement in judgements if judgement.action is Action.EXCLUDE)
        return GroupJudgement(action=Action.EXCLUDE, reason=reason, confirmed_exploits=lost, retry=retry, impact=impact)
    if lost and impact.zero_variance:
        return GroupJudgement(action=Action.EXCLUDE, reason="overrides leave every reward equal", confirmed_exploits=lost, impact=impact)
    return GroupJudgement(action=Action.KEEP, impact=impact)


def _took(judgement: Judgement) -> bool:
    """Whether it lost its reward for what it did, and not for what its verifier did."""
    return judgement.action is Action.OVERRIDE_REWARD and judgement.cause is not Cause.VERIFIER_DEFECT


def _used(judgement: Judgement, reward: float | None) -> float | None:
    """What the row would be learnt with; None where it is out."""
    if judgement.action is Action.EXCLUDE:
        return None
    return judgement.reward_override if judgement.action is Action.OVERRIDE_REWARD else reward
