"""Two passes over the files and a judgement: survey, inspect, judge.

Memory holds what the survey keeps, one judgement a trajectory (a shared one where nothing was found), and a block of
at most `BLOCK` trajectories at a time; what the checks said goes through a file. The honest mean of an environment
version is that of all given files, and a group is whatever of it they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec

from inspector import engine, gates
from inspector.check import Check
from inspector.engine import Assessment, Needs
from inspector.errors import UnreadableInput
from inspector.formats import Imported, Refused
from inspector.local.declared import Declared
from inspector.local.reasoning import without_reasoning
from inspector.local.report import Report, report
from inspector.local.sources import Sources
from inspector.local.spool import Inspected, Spool
from inspector.local.survey import Group, Survey, group_of
from inspector.local.usual import Usual
from inspector.policy import Policy
from inspector.trajectory import Trajectory
from inspector.verdict import Action, Judgement, Outcome, Verdict

BLOCK = 64
BLOCK_BYTES = 8 << 20

Progress = Callable[[str, int, int | None], object]  # what is being done, how many trajectories so far, of how many


@dataclass(frozen=True)
class Plan:
    """How trajectories are to be audited."""

    checks: Sequence[Check]
    policy: Policy
    declared: Declared = field(default_factory=Declared)
    without_reasoning: bool = False
    usual: Usual = field(default_factory=Usual)

    def read(self, line: bytes) -> Trajectory:
        """A trajectory as its checks will see it."""
        trajectory = gates.read(line)
        return without_reasoning(trajectory) if self.without_reasoning else trajectory


@dataclass(frozen=True)
class Audit:
    """What came of it."""

    reports: Iterator[Report]  # in the order of the files
    refused: Sequence[Refused]
    duplicates: int
    trajectories: int


def audit(sources: Sources, plan: Plan, spool: Spool, progress: Progress = lambda *_: None) -> Audit:
    """Audit everything that can be read. The spool must stay open until the reports were taken."""
    survey = _survey(sources, plan, progress)
    honest = _inspect(sources, plan, survey, spool, progress)
    judgements = _judge(plan, spool, honest)
    reports = (report(inspected, judgement, plan.checks) for inspected, judgement in zip(spool, judgements, strict=True))
    return Audit(reports, survey.refused, survey.duplicates, survey.trajectories)


# --- the two passes --------------------------------------------------------------------------------------------------


def _survey(sources: Sources, plan: Plan, progress: Progress) -> Survey:
    survey = Survey()
    for found in sources.read():
        if isinstance(found, Refused):
            survey.refused.append(found)
        else:
            read = plan.read(found.line)
            survey.add(read, found.line, found.source, plan.declared.of(read.environment.id, read.environment.version, read.task.id))
            progress("reading", survey.trajectories, None)
    return survey


Honest = Mapping[tuple[str, str], tuple[int, float]]  # (count, sum) of accepted rewards by environment version


def _inspect(sources: Sources, plan: Plan, survey: Survey, spool: Spool, progress: Progress) -> Honest:
    honest: dict[tuple[str, str], tuple[int, float]] = {}
    done = 0
    for block in _blocks(sources, plan, survey):
        for inspected in _inspected(block, plan, survey):
            spool.add(inspected)
            if inspected.reward is not None and _judgement(plan, inspected, None).verdict is Verdict.ACCEPT:
                place = (inspected.environment, inspected.version)
                count, total = honest.get(place, (0, 0.0))
                honest[place] = (count + 1, total + inspected.reward)
        done += len(block)
        progress("checking", done, survey.trajectories)
    if done != survey.trajectories:
        raise UnreadableInput(f"the files changed while they were read: {survey.trajectories} trajectories at first, then {done}")
    return honest


Block = list[tuple[Imported, Trajectory]]


def _blocks(sources: Sources, plan: Plan, survey: Survey) -> Iterator[Block]:
    block: Block = []
    size, seen = 0, set[str]()
    for found in sources.read():
        if isinstance(found, Refused):
            continue
        trajectory = plan.read(found.line)
        if trajectory.id in seen or not survey.knows(trajectory, found.line):
            continue
        seen.add(trajectory.id)
        block.append((found, trajectory))
        size += len(found.line)
        if len(block) >= BLOCK or size >= BLOCK_BYTES:
            yield block
            block, size = [], 0
    if block:
        yield block


def _inspected(block: Block, plan: Plan, survey: Survey) -> Iterator[Inspected]:
    read = [trajectory for _, trajectory in block]
    declarations = [plan.declared.of(t.environment.id, t.environment.version, t.task.id) for t in read]
    baselines = plan.usual.of({(t.environment.id, t.environment.version) for t in read})
    assessed = engine.run(plan.checks, read, Needs(declarations, survey.history(read), baselines, payments=survey.payments(read)))
    for (imported, trajectory), assessment in zip(block, assessed, strict=True):
        yield _kept(imported, trajectory, assessment)


def _kept(imported: Imported, t: Trajectory, assessment: Assessment) -> Inspected:
    return Inspected(
        id=t.id,
        source=imported.source,
        environment=t.environment.id,
        version=t.environment.version,
        task=t.task.id,
        group=group_of(t.header),
        reward=t.reward,
        outcomes=assessment.outcomes,
        findings=assessment.findings,
        notes=dict(assessment.notes),
        lost=len(imported.lost),
    )


# --- judging ---------------------------------------------------------------------------------------------------------


def _judge(plan: Plan, spool: Spool, honest: Honest) -> list[Judgement]:
    judgements: list[Judgement] = []
    rewards: list[float | None] = []
    groups: dict[Group, list[int]] = {}
    accepted = Judgement(verdict=Verdict.ACCEPT, probability=plan.policy.prior, action=Action.KEEP)
    for at, inspected in enumerate(spool):
        judgement = _judgement(plan, inspected, partial(_honest_mean, plan, honest))
        judgements.append(accepted if judgement == accepted else judgement)
        rewards.append(inspected.reward)
        if inspected.group:
            groups.setdefault(inspected.group, []).append(at)
    for members in groups.values():
        _judge_group(plan, members, judgements, rewards)
    return judgements


def _judge_group(plan: Plan, members: Sequence[int], judgements: list[Judgement], rewards: Sequence[float | None]) -> None:
    judged = plan.policy.judge_group([judgements[at] for at in members], [rewards[at] for at in members])
    if judged.action is not Action.EXCLUDE:
        return
    for at in members:
        row = judgements[at]
        if row.action is not Action.EXCLUDE:
            judgements[at] = msgspec.structs.replace(
                row, action=Action.EXCLUDE, reward_override=None, reasons=(*row.reasons, f"excluded with its group: {judged.reason}")
            )


def _judgement(plan: Plan, inspected: Inspected, mean: Callable[[Inspected], float | None] | None) -> Judgement:
    if not inspected.findings and Outcome.ERROR not in inspected.outcomes:
        return Judgement(verdict=Verdict.ACCEPT, probability=plan.policy.prior, action=Action.KEEP)
    return plan.policy.judge(
        inspected.findings,
        inspected.outcomes,
        plan.checks,
        declaration=plan.declared.of(inspected.environment, inspected.version, inspected.task),
        reward=inspected.reward,
        honest_mean=mean(inspected) if mean else None,
    )


def _honest_mean(plan: Plan, honest: Honest, inspected: Inspected) -> float | None:
    count, total = honest.get((inspected.environment, inspected.version), (0, 0.0))
    declaration = plan.declared.of(inspected.environment, inspected.version, inspected.task)
    return plan.policy.honest_mean(total, count, declaration)
