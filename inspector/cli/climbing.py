"""The probe of environments as far as it has come, so that what was done before an interruption can be told."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event

from inspector.cli.output import Step, progress
from inspector.cli.rolling import Rolling, Wanted, rolling
from inspector.cli.under_test import Asked, UnderTest, opened
from inspector.environments.protocol import AS_DECLARED, Conditions, Environment, Grade, Kind, Submission, TaskUnderTest
from inspector.probe import causes, probe
from inspector.probe.words import EnvironmentReport, Hint, TaskReport
from inspector.reports.probed import Interruption
from inspector.showable import showable

NAME = 60  # characters beside a bar


class Stopped(Exception):
    """No more is graded."""


@dataclass(frozen=True, slots=True)
class Watched:
    """An environment that says which tasks were begun, and that grades nothing more once it was told to stop."""

    environment: Environment
    stopped: Event
    begun: set[str]

    @property
    def id(self) -> str:
        """Of the environment."""
        return self.environment.id

    @property
    def version(self) -> str:
        """Of the environment."""
        return self.environment.version

    @property
    def verifier_digest(self) -> str:
        """Of the environment."""
        return self.environment.verifier_digest

    def tasks(self) -> Sequence[TaskUnderTest]:
        """All of them. Raises Unreadable."""
        return self.environment.tasks()

    def grade(self, task: TaskUnderTest, submission: Submission, conditions: Conditions = AS_DECLARED) -> Grade:
        """What the verifier says. Raises Stopped: a grade whose boxes were ended meanwhile would say what is not so."""
        if self.stopped.is_set():
            raise Stopped
        self.begun.add(task.id)
        grade = self.environment.grade(task, submission, conditions)
        if self.stopped.is_set():
            raise Stopped
        return grade


@dataclass
class Climb:
    """Of one environment."""

    one: UnderTest
    begun: set[str] = field(default_factory=set)
    done: dict[str, TaskReport] = field(default_factory=dict)
    hints: Mapping[str, Sequence[Hint]] = field(default_factory=dict)
    started: float = 0.0
    whole: EnvironmentReport | None = None
    awaiting: int = 0  # tasks without a reference, to which the agent did not come yet

    def climb(self, asked: Asked, parallel: int, step: Step, stopped: Event) -> None:
        """Probe its tasks."""
        name = showable(self.one.environment.id, limit=NAME)

        def tell(report: TaskReport, done: int, total: int) -> None:
            self.done[report.task] = report
            step(name, done, total)

        self.started = time.perf_counter()
        self.hints = self.one.hints(step)
        step(name, 0, len(self.one.tasks))
        watched, only = Watched(self.one.environment, stopped, self.begun), [task.id for task in self.one.tasks]
        self.whole = probe(watched, depth=asked.depth, seed=asked.seed, hints=self.hints, tell=tell, parallel=parallel, only=only, command=asked.command())

    def roll(self, episodes: Rolling, seed: int, step: Step) -> None:
        """Add the episodes of an agent, a task at a time."""
        assert self.whole is not None, "it was climbed"
        self.awaiting = sum(task.reference is None for task in self.one.tasks)
        for report in episodes.added(self.one.environment, self.whole, seed, step):
            self.whole = report
            self.awaiting -= 1

    def report(self) -> EnvironmentReport:
        """Of the tasks that are done."""
        return self.whole or self._so_far()

    def _so_far(self) -> EnvironmentReport:
        one_verifier = all(task.kind in (Kind.TEXT, Kind.ACTIONS) for task in self.one.tasks)
        done = [self.done[task.id] for task in self.one.tasks if task.id in self.done]
        judged, notes = causes.suspect_ourselves(done, one_verifier=one_verifier)
        return EnvironmentReport(
            environment=self.one.environment.id,
            version=self.one.environment.version,
            verifier_digest=self.one.environment.verifier_digest,
            tasks=tuple(judged),
            notes=tuple(notes),
            hints=tuple(self.hints.get("", ())),
            cpu_s=round(sum(report.cpu_s for report in judged), 4),
            wall_s=round(time.perf_counter() - self.started, 4),
        )

    @property
    def under_way(self) -> int:
        """Tasks that were begun and did not come to their end."""
        return len(self.begun.intersection(task.id for task in self.one.tasks) - self.done.keys())


def climb_all(climbs: list[Climb], asked: Asked, wanted: Wanted, parallel: int, stopped: Event) -> None:
    """Probe what was asked for; what was done stands in `climbs`, whatever happens. Raises Unreadable and BadParameter."""
    climbs += map(Climb, opened(asked))
    with rolling(wanted) as episodes, progress() as step:
        for climb in climbs:
            climb.climb(asked, parallel, step, stopped)
        if episodes is not None:
            for climb in climbs:
                climb.roll(episodes, asked.seed, step)


def interruption(signal: str, climbs: Sequence[Climb]) -> Interruption:
    """How far all of them have come."""
    probed, under_way = sum(len(climb.done) for climb in climbs), sum(climb.under_way for climb in climbs)
    every, awaiting = sum(len(climb.one.tasks) for climb in climbs), sum(climb.awaiting for climb in climbs)
    return Interruption(signal, probed, under_way, every - probed - under_way, awaiting)
