"""What a check may say: the rules of a finding, and the text that its spans point into."""

from __future__ import annotations

import re

import msgspec

from inspector.errors import InspectorError
from inspector.step_texts import plain
from inspector.trajectory import Step, Trajectory, text_of
from inspector.verdict import Finding, Span

_ARGUMENT = re.compile(r"tool_calls\[(\d{1,9})\]\.arguments\.(.*)", re.DOTALL)
_TOOL = re.compile(r"tool_calls\[(\d{1,9})\]\.function_name")
_RESULT = re.compile(r"observation\.results\[(\d{1,9})\]\.content")


class Inconclusive(InspectorError):
    """Raised by a check that looked and could not tell."""


def misfit(finding: object, trajectory: Trajectory | None) -> str | None:
    """Why this is not a finding about that trajectory (None: about a group, which has no transcript); None where all is well."""
    if not isinstance(finding, Finding):
        return f"yielded {type(finding).__name__}, not a Finding"
    try:
        msgspec.convert(msgspec.to_builtins(finding), Finding)
    except (msgspec.ValidationError, TypeError) as error:
        return f"finding: {error}"
    if not 0 <= finding.score <= 1:
        return f"score {finding.score} is outside [0, 1]"
    if finding.p_value is not None and not 0 <= finding.p_value <= 1:
        return f"p_value {finding.p_value} is outside [0, 1]"
    return next((fault for span in finding.spans if (fault := _misplaced(span, trajectory))), None)


def _misplaced(span: Span, trajectory: Trajectory | None) -> str | None:
    if trajectory is None:
        return "a finding about a group cannot point into a transcript"
    text = text_at(trajectory, span)
    if text is None:
        return f"span points at {span.field!r} of step {span.step}, which is not there ({len(trajectory.steps)} steps)"
    if not 0 <= span.start <= span.end <= len(text):
        return f"span [{span.start}, {span.end}) lies outside the {len(text)} characters of {span.field!r} of step {span.step}"
    return None


def text_at(trajectory: Trajectory, span: Span) -> str | None:
    """The whole text of the field that a span points into; None where there is no such step or field.

    Fields are `message`, `reasoning_content`, `tool_calls[i].function_name`, `tool_calls[i].arguments.NAME` (as JSON where
    it is no string) and `observation.results[i].content`; several parts of one content are joined by line feeds.
    """
    if not 0 <= span.step < len(trajectory.steps):
        return None
    step = trajectory.steps[span.step]
    if span.field == "message":
        return text_of(step.message)
    if span.field == "reasoning_content":
        return step.reasoning_content
    return _of_call(step, span.field) if span.field.startswith("tool_calls") else _result(step, span.field)


def _of_call(step: Step, field: str) -> str | None:
    calls = step.tool_calls or []
    if named := _TOOL.fullmatch(field):
        return calls[int(named[1])].function_name if int(named[1]) < len(calls) else None
    found = _ARGUMENT.fullmatch(field)
    if not found or int(found[1]) >= len(calls) or found[2] not in calls[int(found[1])].arguments:
        return None
    return plain(calls[int(found[1])].arguments[found[2]])


def _result(step: Step, field: str) -> str | None:
    found = _RESULT.fullmatch(field)
    results = step.observation.results if step.observation else []
    return text_of(results[int(found[1])].content) if found and int(found[1]) < len(results) else None
