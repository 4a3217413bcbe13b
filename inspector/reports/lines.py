"""A report for programs: one value for each task, and a last one for its environment; the very last where it was interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from inspector.probe.words import EnvironmentReport, TaskReport
from inspector.reports.encodable import all_encodable
from inspector.reports.probed import Interruption, Probed


def lines(probed: Probed) -> Iterator[dict[str, Any]]:
    """Values to be written as one line of JSON each; foreign text is whole in them."""
    for environment in probed.environments:
        for task in environment.tasks:
            yield all_encodable(msgspec.to_builtins(_task(probed, environment, task)))
        yield all_encodable(msgspec.to_builtins(_environment(probed, environment)))
    if probed.interruption:
        yield _interruption(probed.interruption)


def _interruption(told: Interruption) -> dict[str, Any]:
    counts = {"probed": told.probed, "under_way": told.under_way, "not_begun": told.not_begun, "awaiting_agent": told.awaiting}
    return {"interrupted": told.signal, **counts}


def _task(probed: Probed, environment: EnvironmentReport, task: TaskReport) -> dict[str, Any]:
    known = {"new": sum(not ground.known for ground in probed.grounds(environment, task))} if probed.baseline else {}
    return {
        "task": task.task,
        "outcomes": task.outcomes,
        "probabilities": task.probabilities,
        "evidence": task.evidence,
        "runs": len(task.runs),
        "cpu_s": round(task.cpu_s, 3),
        "reproduce": task.reproduce,
        "wall_s": round(task.wall_s, 3),
        "hints": task.hints,
        "notes": task.notes,
        "environment": environment.environment,
        **known,
    }


def _environment(probed: Probed, environment: EnvironmentReport) -> dict[str, Any]:
    known = {"new": sum(not ground.known for task in environment.tasks for ground in probed.grounds(environment, task))} if probed.baseline else {}
    return {
        "environment": environment.environment,
        "version": environment.version,
        "verifier_digest": environment.verifier_digest,
        "tasks": len(environment.tasks),
        "outcomes": environment.counts(),
        "runs": sum(len(task.runs) for task in environment.tasks),
        "cpu_s": round(environment.cpu_s, 3),
        "wall_s": round(environment.wall_s, 3),
        "hints": environment.hints,
        "notes": environment.notes,
        **known,
    }
