"""The texts of a trajectory in which patterns are looked for, and where each of them stands.

Building the texts is on the hot path of every audit and names nothing; the names are made for the few that hold something.
Steps that compaction copied are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.signatures.places import TRANSCRIPT, Field, Place
from inspector.step_texts import plain
from inspector.trajectory import Source, Trajectory, text_of


def texts_of(trajectory: Trajectory, places: frozenset[Place]) -> list[str]:
    """The texts of those places, in reading order."""
    texts: list[str] = []
    add = texts.append
    messages, prompts, reasoning, tools, actions, observations = (place in places for place in TRANSCRIPT)
    for step in trajectory.document.steps:
        if step.is_copied_context:
            continue
        if (step.message is not None) and (messages if step.source is Source.AGENT else prompts):
            add(step.message if type(step.message) is str else text_of(step.message))
        if reasoning and step.reasoning_content is not None:
            add(step.reasoning_content)
        if step.tool_calls and (tools or actions):
            for call in step.tool_calls:
                if tools:
                    add(call.function_name)
                if actions:
                    for value in call.arguments.values():
                        add(value if type(value) is str else plain(value))
        if observations and step.observation is not None:
            for result in step.observation.results:
                add(result.content if type(result.content) is str else text_of(result.content))
    return texts


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
