"""Grades submissions on one task, keeps what each run cost and said, and tells a steady payment from one by chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from inspector.environments.protocol import Conditions, Environment, Grade, Submission, TaskUnderTest, Trouble
from inspector.probe.attempts import Attempt
from inspector.probe.words import Family, Run

CONFIRMED = 3  # runs of which each must be paid before a hit is told
DETAIL = 2000


@dataclass(frozen=True, slots=True)
class Hit:
    """What became of an attempt that was paid once."""

    attempt: Attempt
    runs: Sequence[Run]  # of the attempt
    controls: Sequence[Run]

    @property
    def steady(self) -> bool:
        """Paid each time."""
        return all(run.paid for run in self.runs)

    @property
    def by_chance(self) -> bool:
        """The same submission was paid and was refused; a run without a grade says neither."""
        return any(mixed(runs) for runs in (self.runs, self.controls))

    @property
    def proven(self) -> bool:
        """Paid each time, and its control never."""
        return self.steady and not any(run.paid for run in self.controls)


def mixed(runs: Sequence[Run]) -> bool:
    """Whether graded runs of one submission disagree."""
    return len({run.paid for run in runs if run.trouble is None}) > 1


@dataclass
class Trials:
    """The runs of one task."""

    environment: Environment
    task: TaskUnderTest
    seed: int = 0
    runs: list[Run] = field(default_factory=list)

    def grade(
        self,
        probe: str,
        family: Family,
        submission: Submission,
        *,
        seed: int | None = None,
        task: TaskUnderTest | None = None,
        network: bool | None = None,
    ) -> Run:
        """One graded submission, also kept in `runs`. A broken sandbox gets a second chance."""
        return self.graded(probe, family, submission, seed=seed, task=task, network=network)[0]

    def graded(
        self,
        probe: str,
        family: Family,
        submission: Submission,
        *,
        seed: int | None = None,
        task: TaskUnderTest | None = None,
        network: bool | None = None,
    ) -> tuple[Run, Grade]:
        """As `grade`, with the whole of what the verifier said."""
        conditions = Conditions(network=network, seed=self.seed if seed is None else seed)
        grade = self.environment.grade(task or self.task, submission, conditions)
        if grade.trouble is Trouble.BROKEN:
            grade = self.environment.grade(task or self.task, submission, conditions)
        run = self._run(probe, family, grade)
        self.runs.append(run)
        return run, grade

    def attempt(self, attempt: Attempt) -> Run:
        """Grade an attempt once."""
        return self.grade(attempt.probe, attempt.family, attempt.submission)

    def hit(self, attempt: Attempt) -> Hit | None:
        """Grade an attempt, and where it is paid again and with its control; None where it is not paid."""
        first = self.attempt(attempt)
        if not first.paid:
            return None
        again = [self.attempt(attempt) for _ in range(CONFIRMED - 1)]
        if attempt.control is None or not all(run.paid for run in again):
            return Hit(attempt, [first, *again], ())
        return Hit(attempt, [first, *again], [self._control(attempt, attempt.control) for _ in range(CONFIRMED - 1)])

    def _control(self, attempt: Attempt, control: Submission) -> Run:
        return self.grade(f"{attempt.probe}/control", attempt.family, control)

    def _run(self, probe: str, family: Family, grade: Grade) -> Run:
        paid = grade.reward is not None and grade.reward >= self.task.paid_at
        detail = "\n".join(part for part in (grade.submission_evidence, grade.evidence) if part)[-DETAIL:]
        return Run(probe=probe, family=family, reward=grade.reward, paid=paid, trouble=grade.trouble, detail=detail, cpu_s=grade.cpu_s, wall_s=grade.wall_s)
