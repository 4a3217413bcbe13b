"""The episode used up what its declaration allows, and its record says that the agent was done."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from checks.infrastructure import FINISHED
from inspector.check import Cause, Declaration, Finding, NotAssessed, Tier, Trajectory, check, envelope, example
from inspector.trajectory import Source, Step

# What agents call when they are done; whoever calls one at the last step was not cut off.
_ENDING = re.compile(r"submit|finish|done|complete|terminate|final|answer|exit|stop", re.IGNORECASE)

_THREE, _MINUTE = {"limits": {"steps": 3}}, {"limits": {"seconds": 60}}
_BUSY = {"tool_calls": [{"tool_call_id": "c", "function_name": "bash", "arguments": {"command": "make"}}]}
_SUBMIT = {"tool_calls": [{"tool_call_id": "c", "function_name": "submit", "arguments": {}}]}
_FROM = "2026-11-30T10:00:00Z"


def _steps(*last: dict[str, Any], before: int) -> list[dict[str, Any]]:
    busy: dict[str, Any] = {"source": "agent", "message": "", **_BUSY}
    told = [{"source": "user", "message": "build it"}, *[busy] * before, *[{"source": "agent", "message": "", **one} for one in last]]
    return [{"step_id": at + 1, **step} for at, step in enumerate(told)]


def _ended(reason: str = "completed", **overrides: Any) -> dict[str, Any]:
    return envelope(**{"reward": 0.0, "verifier": None, "termination": {"reason": reason}, "steps": _steps(before=3), **overrides})


@check(
    version=1,
    tier=Tier.EVIDENCE,
    cause=Cause.INFRASTRUCTURE,
    clean=[
        example("one step under the limit", _ended(steps=_steps(before=2)), declaration=_THREE),
        example("at its last step it submitted", _ended("submitted", steps=_steps(_SUBMIT, before=2)), declaration=_THREE),
        example("at its last step it only answered", _ended(steps=_steps({"message": "It is built."}, before=2)), declaration=_THREE),
        example("the reason names the limit", _ended("max_steps", termination={"reason": "max_steps", "truncated": True}), declaration=_THREE),
        example("it was not scored", _ended(reward=None), declaration=_THREE),
        example("a second under the limit", _ended(started_at=_FROM, ended_at="2026-11-30T10:00:59Z"), declaration=_MINUTE),
        example(
            "the user's steps are not counted", _ended(steps=[*_steps(before=2), {"step_id": 9, "source": "user", "message": "go on"}]), declaration=_THREE
        ),
    ],
    flagged=[
        example("three of three steps, and still building", _ended(), declaration=_THREE),
        example("more steps than are allowed", _ended("submitted", steps=_steps(_SUBMIT, before=3)), declaration=_THREE),
        example("all of the minute was used, and it was paid", _ended(reward=1.0, started_at=_FROM, ended_at="2026-11-30T10:01:00Z"), declaration=_MINUTE),
    ],
)
def finished_at_its_limit(trajectory: Trajectory, declaration: Declaration) -> Iterator[Finding]:
    """The episode reached its declared limit of steps or of time, yet its record says that the agent finished, and it was scored.

    It was cut off and passes for finished: the reward speaks of the limit, and a trainer that masks truncated episodes
    does not mask it. Whoever submits, or only answers, at the very last step did finish.
    """
    limits = declaration.limits
    if limits.steps is None and limits.seconds is None:
        raise NotAssessed("declaration: limits.steps or limits.seconds")
    reason, cut = (trajectory.termination.reason or "").strip().lower(), trajectory.termination.truncated or trajectory.termination.timed_out
    if trajectory.reward is None or reason not in FINISHED or cut:
        return
    own = [step for _, step in trajectory.own_steps if step.source is Source.AGENT]
    took_s = _took_s(trajectory)
    if limits.steps is not None and (len(own) > limits.steps or (len(own) == limits.steps and not _ends(own[-1]))):
        yield Finding(message=f"the agent took {len(own)} steps of {limits.steps} allowed, yet the reason is {reason!r} and the reward {trajectory.reward:g}")
    elif limits.seconds is not None and took_s is not None and took_s >= limits.seconds:
        yield Finding(message=f"it took {took_s:g} s of {limits.seconds:g} s allowed, yet the reason is {reason!r} and the reward {trajectory.reward:g}")
    elif limits.steps is None and took_s is None:
        raise NotAssessed("started_at and ended_at")


def _ends(step: Step) -> bool:
    calls = step.tool_calls or []
    return not calls or any(_ENDING.search(call.function_name) for call in calls)


def _took_s(trajectory: Trajectory) -> float | None:
    began, ended = trajectory.header.started_at, trajectory.header.ended_at
    return None if began is None or ended is None else (ended - began).total_seconds()
