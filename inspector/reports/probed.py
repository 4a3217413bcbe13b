"""What every form of a report is made from: what a probe said, how much of it was known, and where its tasks lie."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from inspector.probe.words import EnvironmentReport, Evidence, Outcome, TaskReport
from inspector.reports.baseline import Baseline, Known, known_by
from inspector.reports.encodable import encodable
from inspector.reports.meanings import DEFECTS, MEANINGS, rank


class Ground(NamedTuple):
    """Why an outcome holds, and whether a baseline knew it."""

    evidence: Evidence
    known: bool


class Interruption(NamedTuple):
    """A probe was ended before it was done."""

    signal: str
    probed: int  # tasks
    under_way: int  # nothing is told of them
    not_begun: int
    awaiting: int = 0  # of those that were probed, tasks that the agent did not come to

    def told(self) -> str:
        """In one sentence."""
        every = self.probed + self.under_way + self.not_begun
        if not every:
            return f"interrupted by {self.signal} before any task was begun"
        agent = f"; the agent did not come to {self.awaiting}" if self.awaiting else ""
        far = f"{self.probed} probed, {self.under_way} under way, of which nothing is told, {self.not_begun} not begun"
        return f"interrupted by {self.signal}; of {every} tasks: {far}{agent}"


@dataclass(frozen=True, slots=True)
class Probed:
    """Some environment versions, after a probe."""

    environments: Sequence[EnvironmentReport]
    at: datetime
    command: str = ""  # that was run
    baseline: Baseline | None = None
    failing: frozenset[Outcome] = DEFECTS
    files: Mapping[tuple[str, str], str] = field(default_factory=dict)  # (environment, task) -> its file, as seen from where the command was run
    interruption: Interruption | None = None

    def grounds(self, environment: EnvironmentReport, task: TaskReport) -> list[Ground]:
        """One at least for each outcome but `sound`, worst first."""
        knows = self.baseline.knows if self.baseline else _knows_nothing
        return [Ground(one, knows(environment.environment, task.task, one)) for one in evidence_of(task)]

    def all_grounds(self) -> Iterator[tuple[EnvironmentReport, TaskReport, Ground]]:
        """Of all tasks, in their order."""
        for environment in self.environments:
            for task in environment.tasks:
                for ground in self.grounds(environment, task):
                    yield environment, task, ground

    def new(self) -> frozenset[Outcome]:
        """All outcomes that some task has and the baseline does not know."""
        sound = {Outcome.SOUND for environment in self.environments for task in environment.tasks if Outcome.SOUND in task.outcomes}
        return frozenset(sound | {ground.evidence.outcome for *_, ground in self.all_grounds() if not ground.known})

    def known(self) -> set[Known]:
        """What a baseline of this probe holds; of tasks that were not probed it keeps what it held."""
        probed = {(encodable(environment.environment), encodable(task.task)) for environment in self.environments for task in environment.tasks}
        kept = {one for one in (self.baseline or Baseline()).known if (one.environment, one.task) not in probed}
        found = (known_by(environment.environment, task.task, ground.evidence) for environment, task, ground in self.all_grounds())
        return kept.union(*found)


def evidence_of(task: TaskReport) -> list[Evidence]:
    """All of it, worst first; an outcome that came without any is spoken for by the task's first note, else by its meaning."""
    spoken = {one.outcome for one in task.evidence}
    silent = [_silent(task, outcome) for outcome in task.outcomes if outcome is not Outcome.SOUND and outcome not in spoken]
    return sorted([*task.evidence, *silent], key=lambda one: rank(one.outcome))


def notes_of(task: TaskReport) -> list[str]:
    """All that its evidence does not say already."""
    claims = {one.claim for one in evidence_of(task)}
    return [note for note in task.notes if note not in claims]


def outcomes_of(task: TaskReport) -> list[Outcome]:
    """Worst first."""
    return sorted(task.outcomes, key=rank)


def worst_first(environment: EnvironmentReport) -> list[TaskReport]:
    """All tasks that are not sound."""
    unsound = [task for task in environment.tasks if Outcome.SOUND not in task.outcomes]
    return sorted(unsound, key=lambda task: sorted(map(rank, task.outcomes)))


class Cause(NamedTuple):
    """One outcome by one probe, in however many tasks."""

    outcome: Outcome
    probe: str
    tasks: int
    claim: str  # of the first


def causes_of(environment: EnvironmentReport) -> list[Cause]:
    """Worst first, then the most frequent; without those that no probe stands behind."""
    found: dict[tuple[Outcome, str], list[str]] = {}
    for task in environment.tasks:
        for one in evidence_of(task):
            found.setdefault((one.outcome, one.probe), []).append(one.claim)
    causes = [Cause(outcome, probe, len(claims), claims[0]) for (outcome, probe), claims in found.items() if probe]
    return sorted(causes, key=lambda cause: (rank(cause.outcome), -cause.tasks, cause.probe))


def fingerprint(*parts: str) -> str:
    """The same for the same parts, whenever and wherever they are found."""
    joined = "\0".join(part.replace("\0", "\0\0") for part in parts)
    return hashlib.sha256(joined.encode(errors="surrogatepass")).hexdigest()


def _silent(task: TaskReport, outcome: Outcome) -> Evidence:
    claim = task.notes[0] if task.notes else MEANINGS[outcome]
    return Evidence(outcome=outcome, probe="", claim=claim, proof="", reproduce=task.reproduce)


def _knows_nothing(_environment: str, _task: str, _evidence: Evidence) -> bool:
    return False
