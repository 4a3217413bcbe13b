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


Address = tuple[Place, int, int, str]  # place, step, number of the call or result, name of the argument


def addresses_of(trajectory: Trajectory, places: frozenset[Place]) -> list[Address]:
    """The address of each text that `texts_of` gives, in the same order."""
    return [address for address in _addresses(trajectory) if address[0] in places]


def _addresses(trajectory: Trajectory) -> Iterator[Address]:
    for at, step in trajectory.own_steps:
        if step.message is not None:
            yield (Place.MESSAGE if step.source is Source.AGENT else Place.PROMPT, at, 0, "")
        if step.reasoning_content is not None:
            yield (Place.REASONING, at, 0, "")
        for number, call in enumerate(step.tool_calls or ()):
            yield (Place.TOOL, at, number, "")
            for name in call.arguments:
                yield (Place.ACTION, at, number, name)
        if step.observation is not None:
            for number in range(len(step.observation.results)):
                yield (Place.OBSERVATION, at, number, "")


def field_at(address: Address) -> Field:
    """The field as spans name it."""
    place, step, number, name = address
    return Field(place, step, _FORMS[place].format(number) + name)


_FORMS = {
    Place.MESSAGE: "message",
    Place.PROMPT: "message",
    Place.REASONING: "reasoning_content",
    Place.TOOL: "tool_calls[{}].function_name",
    Place.ACTION: "tool_calls[{}].arguments.",
    Place.OBSERVATION: "observation.results[{}].content",
}
