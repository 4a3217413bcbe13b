"""What an agent's episodes say of a task, added to what its probe said."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

import msgspec

from inspector.agent.loop import Agent
from inspector.agent.rollouts import Attempt, Rollouts, roll_out
from inspector.environments.protocol import Environment
from inspector.probe.sequential import Rate, Standing, posterior, smallest_seen
from inspector.probe.words import EnvironmentReport, Family, Outcome, Run, TaskReport

AT = (1, 8)  # the k of pass@k that are told


def with_rollouts(
    environment: Environment,
    report: EnvironmentReport,
    agent: Agent,
    *,
    runs: int,
    seed: int = 0,
    folder: Path | None = None,
    only: Collection[str] = (),
    tell: Callable[[int, int], object] = lambda done, of: None,
) -> EnvironmentReport:
    """The report with episodes of the agent on each task that has no reference, or on those of `only`; they are written into `folder`."""
    tasks = {task.id: task for task in environment.tasks()}
    chosen = [one.task for one in report.tasks if (one.task in only if only else tasks[one.task].reference is None)]
    found = {}
    for done, name in enumerate(chosen, 1):
        found[name] = roll_out(environment, tasks[name], agent, runs=runs, seed=seed, folder=folder)
        tell(done, len(chosen))
    judged = tuple(told(one, found[one.task]) if one.task in found else one for one in report.tasks)
    return msgspec.structs.replace(report, tasks=judged, cpu_s=round(sum(one.cpu_s for one in judged), 4))


def told(report: TaskReport, found: Rollouts) -> TaskReport:
    """The report of one task with its episodes.

    An episode that is paid shows that the task can be solved. None that is paid shows only that this agent did not solve it: that is
    said as a note, with the rate that would have been seen, and never as `unsolvable`.
    """
    made = tuple(_run(at, attempt) for at, attempt in enumerate(found.attempts))
    outcomes = report.outcomes
    if found.passed and set(outcomes) == {Outcome.NOT_ASSESSED}:
        outcomes = (Outcome.SOUND,)
    rate = posterior(found.passed, found.runs) if found.runs else None
    return msgspec.structs.replace(
        report,
        outcomes=outcomes,
        probabilities={**report.probabilities, **({"solved": round(rate.mean, 4)} if rate else {})},
        notes=(*report.notes, *_notes(found)),
        runs=(*report.runs, *made),
        cpu_s=round(report.cpu_s + sum(run.cpu_s for run in made), 4),
        wall_s=round(report.wall_s + sum(run.wall_s for run in made), 4),
    )


def _notes(found: Rollouts) -> list[str]:
    lost = len(found.attempts) - found.runs
    notes = [f"{lost} of {len(found.attempts)} episodes say nothing: {_why_lost(found)}"] if lost else []
    if not found.runs:
        return notes
    notes.append("; ".join(f"pass@{k} {_shown(rate)}" for k in AT if (rate := found.pass_at(k)) is not None) + f" in {found.runs} episodes of the agent")
    if not found.passed:
        notes.append(
            f"no episode was paid: a rate of {smallest_seen(found.runs):.2f} or more would have shown itself; the task is too hard for this agent, cannot be"
            " solved, or its verifier refuses right answers"
        )
    elif found.standing is Standing.EASY:
        notes.append("nearly every episode is paid: there is little to learn from it")
    return notes


def _why_lost(found: Rollouts) -> str:
    reasons = [attempt.episode.reason or (attempt.grade.evidence if attempt.grade else "") for attempt in found.attempts if not attempt.counts]
    return next(iter(filter(None, reasons)), "no reason is known")[:300]


def _shown(rate: Rate) -> str:
    return f"{rate.mean:.2f} [{rate.low:.2f}, {rate.high:.2f}]"


def _run(number: int, attempt: Attempt) -> Run:
    grade, episode = attempt.grade, attempt.episode
    return Run(
        probe=f"rollout/{number}",
        family=Family.ROLLOUT,
        reward=grade.reward if grade else None,
        paid=attempt.passed,
        trouble=grade.trouble if grade else None,
        detail=f"{episode.ending} after {episode.turns} turns{f': {episode.reason}' if episode.reason else ''}",
        cpu_s=grade.cpu_s if grade else 0.0,
        wall_s=grade.wall_s if grade else 0.0,
    )
