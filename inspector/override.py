"""What a proved exploit is to be paid, so that it loses.

A hack that is caught with probability q and then paid v, and otherwise paid R, earns (1 - q) R + q v on average. It
loses against honest work of mean m only where v <= (m - (1 - q) R) / q. R is the declared maximum; with a range of
[0, 1] this is (m - (1 - q)) / q.
"""

from __future__ import annotations

import math

from inspector.task import Declaration


def bound(honest_mean: float, recall: float, missed: float) -> float:
    """The largest v that lets the exploit lose; `missed` is what it is paid where it is not caught."""
    if not recall > 0:
        return -math.inf  # what is never caught cannot be made to lose by what the caught are paid
    q = min(recall, 1.0)
    return (honest_mean - (1.0 - q) * missed) / q


def replacement(declaration: Declaration, reward: float, *, honest_mean: float | None, recall: float) -> float | None:
    """The reward of a proved exploit: the declared penalty, or the declared minimum where there is none; None where that is not low enough.

    Not the largest allowed value: one that just ties with honest work would still rank the exploit above the honest
    failures of its group, and the minimum ties with these, so that a group of failures and exploits would teach nothing.
    It never raises a reward. Without a known honest mean the declared minimum stands for it.
    """
    low, high = declaration.reward.min, declaration.reward.max
    if low is None or high is None or low > high:
        return None
    mean = low if honest_mean is None else min(honest_mean, high)
    ceiling = min(bound(mean, recall, max(high, reward)), reward, high)
    penalty = low if declaration.reward.penalty_min is None else min(declaration.reward.penalty_min, low)
    return penalty if penalty <= ceiling else None


def gained(declaration: Declaration, reward: float) -> bool:
    """Whether the exploit earned anything: more than the declared minimum, or than 0 where none is declared."""
    return reward > (0.0 if declaration.reward.min is None else declaration.reward.min)
