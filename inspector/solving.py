"""What the rollouts that trainers posted say of how hard tasks are; evidence beside a probe's, and never an outcome by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlmodel import Session

from inspector.probe.sequential import CAP, Rate, Standing, ThreeWay, clopper_pearson
from inspector.store import environments, trajectories


class Rollouts(NamedTuple):
    """Of one project, of one task: the newest scored ones, as many as the test looks at."""

    scored: int
    paid: int
    standing: Standing
    rate: Rate  # of paid ones, with its exact 95 % interval


def of_tasks(session: Session, project: int, tasks: Sequence[int]) -> dict[int, Rollouts]:
    """By task: what the three-way test says of this project's newest rollouts, in the order in which they came.

    What was excluded for a fault that no policy can cause is left out. That nobody solved a task proves nothing of it: a better
    policy may.
    """
    rewards = trajectories.newest_rewards(session, project, tasks, CAP)
    declared = environments.declarations(session, rewards)
    return {task: judged([declared[task].pays(reward) for reward in found]) for task, found in rewards.items()}


def judged(paid: Sequence[bool]) -> Rollouts:
    """The same of rollouts at hand, the oldest first."""
    test = ThreeWay()
    for one in paid:
        test.add(one)
    return Rollouts(test.runs, test.passed, test.standing, clopper_pearson(test.passed, test.runs))
