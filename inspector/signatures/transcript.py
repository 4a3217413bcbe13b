"""The texts of a trajectory in which patterns are looked for, and where each of them stands.

Building the texts is on the hot path of every audit and names nothing; the names are made for the few that hold something.
Steps that compaction copied are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from inspector.signatures.places import TRANSCRIPT, Field, Place
from inspector.step_texts import plain
from inspector.trajectory import Source, Trajectory, text_of


def texts_of(trajectory: Trajectory, places: frozenset[Place]) -> tuple[list[str], str]:
    """The texts of those places in reading order, and all of them joined by line feeds."""
    found = _contents(trajectory, places)
    try:
        return found, "\n".join(found)
    except TypeError:  # parts, numbers, nothing at all: rare, and told apart only here
        texts = [text if isinstance(text, str) else _text(text) for text in found]
        return texts, "\n".join(texts)


def _contents(trajectory: Trajectory, places: frozenset[Place]) -> list[Any]:
    found: list[Any] = []
    add = found.append
    messages, prompts, reasoning, tools, actions, observations = (place in places for place in TRANSCRIPT)
    for step in trajectory.document.steps:
        if step.is_copied_context:
            continue
        if (messages if step.source is Source.AGENT else prompts) and (message := step.message) is not None:
            add(message)
        if reasoning and (thought := step.reasoning_content) is not None:
            add(thought)
        if (actions or tools) and (calls := step.tool_calls):
            for call in calls:
                if tools:
                    add(call.function_name)
                if actions:
                    for value in call.arguments.values():
                        add(_Argument(value) if type(value) is list else value)
        if observations and (observation := step.observation) is not None:
            for result in observation.results:
                add(result.content)
    return found


class _Argument(NamedTuple):
    """A list that is an argument, and not the parts of a content."""

    value: list[Any]


def _text(content: Any) -> str:
    if isinstance(content, _Argument):
        return plain(content.value)
    return text_of(content) if content is None or isinstance(content, list) else plain(content)


def fields_of(trajectory: Trajectory, places: frozenset[Place]) -> list[Field]:
    """The address of each text that `texts_of` gives, in the same order."""
    return [field for field in _fields(trajectory) if field.place in places]


def _fields(trajectory: Trajectory) -> Iterator[Field]:
    for at, step in trajectory.own_steps:
        if step.message is not None:
            yield Field(Place.MESSAGE if step.source is Source.AGENT else Place.PROMPT, at, "message")
        if step.reasoning_content is not None:
            yield Field(Place.REASONING, at, "reasoning_content")
        for number, call in enumerate(step.tool_calls or ()):
            yield Field(Place.TOOL, at, f"tool_calls[{number}].function_name")
            yield from (Field(Place.ACTION, at, f"tool_calls[{number}].arguments.{name}") for name in call.arguments)
        for number, _ in enumerate(step.observation.results if step.observation else ()):
            yield Field(Place.OBSERVATION, at, f"observation.results[{number}].content")
