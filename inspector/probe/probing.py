"""Probes the tasks of an environment version and says what holds of each and of all."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

import msgspec

from inspector.environments.protocol import Environment, Kind, TaskUnderTest, Text
from inspector.probe import causes
from inspector.probe.judging import Case
from inspector.probe.ladder import climb
from inspector.probe.plans import Depth, Plan
from inspector.probe.trials import Trials
from inspector.probe.words import EnvironmentReport, Hint, TaskReport
from inspector.showable import shell_word

OTHERS = 12  # right answers of other tasks that a task is tried with

Tell = Callable[[TaskReport, int, int], None]


def probe(
    environment: Environment,
    *,
    depth: Depth = Depth.QUICK,
    seed: int = 0,
    hints: Mapping[str, Sequence[Hint]] = {},
    tell: Tell | None = None,
    parallel: int = 1,
    only: Collection[str] = (),
    command: str | None = None,
) -> EnvironmentReport:
    """Climb the ladder on each task, or on those named in `only`.

    `hints` are of the lint, by task. `tell` is called with each report as it is there, how many are done, and of how many. `command` is how the
    same is asked for on a command line, without task and seed. Raises Unreadable where the tasks cannot be read.
    """
    started = time.perf_counter()
    every = environment.tasks()
    tasks = [task for task in every if not only or task.id in only]
    asked = command or f"inspector probe {shell_word(environment.id)}"
    others = _right_answers(every)

    def one(task: TaskUnderTest) -> TaskReport:
        return _probe(environment, task, Plan.of(depth), seed, hints.get(task.id, ()), others, asked)

    reports = dict(_reported(one, tasks, parallel, tell))
    one_verifier = all(task.kind in (Kind.TEXT, Kind.ACTIONS) for task in tasks)
    judged, notes = causes.suspect_ourselves([reports[task.id] for task in tasks], one_verifier=one_verifier)
    return EnvironmentReport(
        environment=environment.id,
        version=environment.version,
        verifier_digest=environment.verifier_digest,
        tasks=tuple(judged),
        notes=(*notes, *causes.of_the_kind((task.kind for task in tasks), judged)),
        hints=tuple(hints.get("", ())),
        cpu_s=round(sum(report.cpu_s for report in judged), 4),
        wall_s=round(time.perf_counter() - started, 4),
    )


def _reported(one: Callable[[TaskUnderTest], TaskReport], tasks: Sequence[TaskUnderTest], parallel: int, tell: Tell | None) -> Iterator[tuple[str, TaskReport]]:
    with ThreadPoolExecutor(max(1, parallel), thread_name_prefix="probe") as pool:
        waiting = [pool.submit(one, task) for task in tasks]
        try:
            for done, future in enumerate(as_completed(waiting), 1):
                report = future.result()
                if tell is not None:
                    tell(report, done, len(tasks))
                yield report.task, report
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _probe(environment: Environment, task: TaskUnderTest, plan: Plan, seed: int, hints: Sequence[Hint], others: Mapping[str, str], command: str) -> TaskReport:
    started = time.perf_counter()
    case = Case(Trials(environment, task, seed), f"{command} --task {shell_word(task.id)} --seed {seed}")
    climb(case, plan, [answer for id, answer in others.items() if id != task.id][:OTHERS])
    return msgspec.structs.replace(case.report(hints), wall_s=round(time.perf_counter() - started, 4))


def _right_answers(tasks: Sequence[TaskUnderTest]) -> dict[str, str]:
    """The references that are texts, of the first tasks."""
    return {task.id: task.reference.text for task in tasks[: 4 * OTHERS] if isinstance(task.reference, Text)}
