"""The text of a posted trajectory that signatures, compression and sketches look at, and the shape that features are made of."""

from __future__ import annotations

from typing import Any, NamedTuple


class StepShape(NamedTuple):
    """Lengths in characters."""

    agent: bool
    message: int
    reasoning: int
    arguments: int
    observation: int
    calls: int


class Shape(NamedTuple):
    """What features see of an episode."""

    steps: list[StepShape]
    commands: int  # distinct ones
    reward: float | None


def joined(document: dict[str, Any]) -> str:
    """All that was said, done and seen, in order, a line feed between any two pieces."""
    return "\n".join(piece for step in document["steps"] for piece in pieces(step))


def pieces(step: dict[str, Any]) -> list[str]:
    found = [step.get("message"), step.get("reasoning_content")]
    for call in step.get("tool_calls") or ():
        found += [value for value in call["arguments"].values() if isinstance(value, str)]
    for result in (step.get("observation") or {}).get("results") or ():
        found.append(result.get("content"))
    return [piece for piece in found if piece is not None]


def shape(document: dict[str, Any], reward: float | None) -> Shape:
    commands: set[str] = set()
    steps = [_step(step, commands) for step in document["steps"]]
    return Shape(steps, len(commands), reward)


def _step(step: dict[str, Any], commands: set[str]) -> StepShape:
    calls = step.get("tool_calls") or ()
    done = [value for call in calls for value in call["arguments"].values() if isinstance(value, str)]
    commands.update(done)
    seen = [result.get("content") or "" for result in (step.get("observation") or {}).get("results") or ()]
    reasoning = step.get("reasoning_content") or ""
    return StepShape(step["source"] == "agent", len(step.get("message") or ""), len(reasoning), sum(map(len, done)), sum(map(len, seen)), len(calls))
