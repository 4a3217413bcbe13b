"""Where in a transcript a feature is to be seen."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.trajectory import Source, Trajectory, text_of
from inspector.verdict import Span

QUOTE = 200  # characters


def place_of(trajectory: Trajectory, feature: str) -> Span | None:
    """The text that made a feature what it is; None where it is no single text."""
    texts = _TEXTS.get(feature)
    found = list(texts(trajectory)) if texts else []
    if not found:
        return None
    span, length = found[-1] if feature == "last_said" else max(found, key=lambda one: one[1])
    return span if length else None


def _said(trajectory: Trajectory) -> Iterator[tuple[Span, int]]:
    for at, step in trajectory.own_steps:
        if step.source is Source.AGENT and (text := text_of(step.message)):
            yield _beginning(at, "message", text), len(text)


def _done(trajectory: Trajectory) -> Iterator[tuple[Span, int]]:
    for at, step in trajectory.own_steps:
        for number, call in enumerate(step.tool_calls or ()):
            for name, value in call.arguments.items():
                if isinstance(value, str):
                    yield _beginning(at, f"tool_calls[{number}].arguments.{name}", value), len(value)


def _seen(trajectory: Trajectory) -> Iterator[tuple[Span, int]]:
    for at, step in trajectory.own_steps:
        for number, result in enumerate(step.observation.results if step.observation else ()):
            if text := text_of(result.content):
                yield _beginning(at, f"observation.results[{number}].content", text), len(text)


def _asked(trajectory: Trajectory) -> Iterator[tuple[Span, int]]:
    for at, step in trajectory.own_steps:
        if step.source is not Source.AGENT and (text := text_of(step.message)):
            yield _beginning(at, "message", text), len(text)


def _beginning(step: int, field: str, text: str) -> Span:
    end = min(len(text), QUOTE)
    return Span(step=step, field=field, start=0, end=end, quote=text[:end])


_TEXTS = {
    "longest_said": _said,
    "last_said": _said,
    "longest_done": _done,
    "longest_seen": _seen,
    "asked": _asked,
}
