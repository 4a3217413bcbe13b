"""Turns advice into what a trainer computes advantages from: rewards and a mask."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from inspector.client.advice import Advice, takes_its_group
from inspector.verdict import Action


def apply(advices: Sequence[Advice], rewards: Sequence[float | None], groups: Sequence[Hashable]) -> tuple[list[float | None], list[bool]]:
    """Rewards and mask after the advice; the three sequences are aligned row by row.

    An excluded row gets the reward None and the mask False: it belongs neither into the loss nor into its group's
    baseline. A masked loss alone is not enough, since the reward would still move the group's mean. A reward that was
    None (not scored) stays None with the mask True. What does not bind (observe mode) changes nothing.
    Raises ValueError when the lengths differ.
    """
    if not len(advices) == len(rewards) == len(groups):
        raise ValueError(f"{len(advices)} advices, {len(rewards)} rewards and {len(groups)} groups do not align")
    lost = {group for advice, group in zip(advices, groups, strict=True) if group is not None and advice.binding and takes_its_group(advice)}
    mask = [not (group in lost or _excluded(advice)) for advice, group in zip(advices, groups, strict=True)]
    return [_reward(*row) for row in zip(advices, rewards, mask, strict=True)], mask


def _excluded(advice: Advice) -> bool:
    return advice.binding and advice.action is Action.EXCLUDE


def _reward(advice: Advice, reward: float | None, used: bool) -> float | None:
    if not used:
        return None
    overridden = advice.binding and advice.action is Action.OVERRIDE_REWARD
    return advice.reward_override if overridden else reward
