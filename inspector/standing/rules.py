"""The numbers of the state machine.

The entry rule is Page's test: Wald's log likelihood ratio of a defect rate of `bad` against `good`, never below 0. Against
the other candidate, the posterior P(d > 0.05) >= 0.95 under Beta(0.5, 12) with forgetting 0.98, it needs half as many
episodes (66 against 136) where an environment turns bad at the rate 0.1 after a clean history, which is what a policy that
finds an exploit looks like; from the start the other is sooner above 0.2 (7 against 17 at 0.4), where exploits and tasks
have rules of their own. At the rate 0.03 it is wrong more often, 0.36 times in 1,000 episodes against 0.01, where 1 is
allowed (`python -m benchmarks.quarantine`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log

DAY_S = 86_400.0


@dataclass(frozen=True, kw_only=True)
class Rules:
    """When states change."""

    good: float = 0.02  # a defect rate that is nobody's concern
    bad: float = 0.10
    bar: float = 6.0  # of the score; what comes by chance at the rate `good` reaches it with a probability of at most exp(-6) a time
    fdr: float = 0.05  # of the environment versions that are quarantined at once, the share that may be sound
    working: float = 0.2  # a share of episodes that infrastructure spoils and that is borne
    failing: float = 0.6
    outage_bar: float = 30.0  # some 28 failures in a row: one dead host of many, or one group, is not enough
    task_exploits: int = 3  # confirmed, and not neutralised
    version_tasks: int = 3  # of its tasks, under which one was confirmed: fewer may be mistakes in single tasks
    version_share: float = 0.05  # of its tasks: below it, quarantining those tasks removes the exploit
    per_task: int = 2  # defects of one task that its version counts at a time: a sick task is no sick environment
    clear: float = log(0.95 / 0.05)  # Wald's other border: some 35 clean episodes
    quiet: int = 50  # clean episodes in a row after which a watch for defects ends
    quiet_exploits: int = 200  # the same after an exploit
    golden: int = 30  # clean replays in a row that release
    golden_expired: int = 10  # that are enough once nobody has looked for `expiry_s`, if none was dirty
    expiry_s: float = 14 * DAY_S
    probation_weight: float = 0.5
    probation_episodes: int = 200
    fleet_share: float = 0.05  # of the training weight of an hour that may be quarantined in an hour without a person

    @cached_property
    def hit(self) -> float:
        """What a defect adds to the score."""
        return log(self.bad / self.good)

    @cached_property
    def miss(self) -> float:
        """What a clean episode adds; negative."""
        return log((1 - self.bad) / (1 - self.good))

    @cached_property
    def down(self) -> float:
        """What an episode that infrastructure spoilt adds to the outage."""
        return log(self.failing / self.working)

    @cached_property
    def up(self) -> float:
        """What any other adds; negative."""
        return log((1 - self.failing) / (1 - self.working))


DEFAULT = Rules()
