"""What is counted of a task or an environment version since its state began."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from inspector.standing.rules import DEFAULT, Rules


class Seen(NamedTuple):
    """What an audited episode says of its task. Clean where nothing."""

    defect: bool = False  # of the verifier or the environment, or an exploit that the policy may still win by
    exploit: bool = False  # confirmed, and such
    neutralised: bool = False  # confirmed, but it loses by itself
    broken: bool = False  # by infrastructure


CLEAN = Seen()


@dataclass(slots=True)
class Evidence:
    """One task or environment version; each episode counts once, however it was sampled: a rare look is no more evidence than another."""

    episodes: int = 0
    defects: int = 0
    exploits: int = 0  # of an environment version: its tasks that have any
    neutralised: int = 0
    broken: int = 0
    score: float = 0.0  # of Page's test
    outage: float = 0.0  # the same for infrastructure
    clearing: float = 0.0  # of the test that releases
    quiet: int = 0  # clean episodes in a row
    golden: int = 0  # clean replays in a row
    dirty: int = 0  # replays that disagreed
    told: int = 0  # of a task: defects that its version has counted since the score was last 0

    def add(self, seen: Seen, rules: Rules = DEFAULT) -> None:
        """Count one audited episode."""
        self.episodes += 1
        self.outage = max(0.0, self.outage + (rules.down if seen.broken else rules.up))
        if seen.broken and not seen.defect:
            self.broken += 1
            return  # it says nothing of the verifier, good or bad
        self._weigh(rules.hit if seen.defect else rules.miss, rules)
        self._note(seen)

    def add_late(self, seen: Seen, rules: Rules = DEFAULT) -> None:
        """An episode that was counted already turns out to be so."""
        if seen.defect:
            self._weigh(rules.hit - rules.miss, rules)
        self._note(seen)

    def withdraw(self, seen: Seen, rules: Rules = DEFAULT) -> None:
        """An episode that was counted so is not so after all."""
        if seen.defect:
            self._weigh(rules.miss - rules.hit, rules)
        self.defects = max(0, self.defects - seen.defect)
        self.exploits = max(0, self.exploits - seen.exploit)
        self.neutralised = max(0, self.neutralised - seen.neutralised)
        self.broken = max(0, self.broken - seen.broken)

    def replayed(self, *, clean: bool) -> None:
        """Count a replay of a final state whose right reward is known."""
        self.golden = self.golden + 1 if clean else 0
        self.dirty += not clean

    def _weigh(self, more: float, rules: Rules) -> None:
        self.score = max(0.0, self.score + more)
        self.clearing = min(rules.clear, self.clearing + more)
        if self.score == 0.0:
            self.told = 0

    def _note(self, seen: Seen) -> None:
        self.defects += seen.defect
        self.broken += seen.broken
        self.exploits += seen.exploit
        self.neutralised += seen.neutralised
        self.quiet = 0 if seen.defect or seen.neutralised else self.quiet + 1


def counts_for_version(task: Evidence, seen: Seen, rules: Rules = DEFAULT) -> bool:
    """Whether an episode of a task, which has counted it already, is to be counted by its environment version too."""
    if not seen.defect:
        return True
    task.told += 1
    return task.told <= rules.per_task
