"""The texts of a trajectory in which patterns are looked for, and where each of them stands.

Building the texts is on the hot path of every audit and names nothing; the names are made for the few that hold something.
Steps that compaction copied are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from inspector.signatures.places import TRANSCRIPT, Field, Place
from inspector.step_texts import plain
from inspector.trajectory import Source, Trajectory, text_of


class Transcript(NamedTuple):
    """The texts of some places, in reading order."""

    texts: list[str]
    joined: str  # by line feeds
    data: bytes  # that, as UTF-8
    marks: list[int]  # of each text: the step's position times KINDS, and the number of its kind


KINDS = 8
SAID, THOUGHT, CALLED, DID, SEEN = range(5)  # message, reasoning, tool, argument, observation
_KEPT: WeakKeyDictionary[Trajectory, tuple[frozenset[Place], Transcript]] = WeakKeyDictionary()


def transcript(trajectory: Trajectory, places: frozenset[Place]) -> Transcript:
    """Read once for all who ask for the same places."""
    kept = _KEPT.get(trajectory)
    if kept is None or kept[0] != places:
        kept = _KEPT[trajectory] = (places, _read(trajectory, places))
    return kept[1]


def _read(trajectory: Trajectory, places: frozenset[Place]) -> Transcript:
    found, marks = _contents(trajectory, places)
    try:
        joined = "\n".join(found)
    except TypeError:  # parts, numbers, nothing at all: rare, and told apart only here
        found = [text if isinstance(text, str) else _text(text) for text in found]
        joined = "\n".join(found)
    return Transcript(found, joined, joined.encode("utf-8", "replace"), marks)


def _contents(trajectory: Trajectory, places: frozenset[Place]) -> tuple[list[Any], list[int]]:
    found: list[Any] = []
    marks: list[int] = []
    add, mark = found.append, marks.append
    messages, prompts, reasoning, tools, actions, observations = (place in places for place in TRANSCRIPT)
    for at, step in enumerate(trajectory.document.steps):
        if step.is_copied_context:
            continue
        at *= KINDS
        if (messages if step.source is Source.AGENT else prompts) and (message := step.message) is not None:
            add(message)
            mark(at)
        if reasoning and (thought := step.reasoning_content) is not None:
            add(thought)
            mark(at + THOUGHT)
        if (actions or tools) and (calls := step.tool_calls):
            for call in calls:
                if tools:
                    add(call.function_name)
                    mark(at + CALLED)
                if actions:
                    for value in call.arguments.values():
                        add(_Argument(value) if type(value) is list else value)
                        mark(at + DID)
        if observations and (observation := step.observation) is not None:
            for result in observation.results:
                add(result.content)
                mark(at + SEEN)
    return found, marks


class _Argument(NamedTuple):
    """A list that is an argument, and not the parts of a content."""

    value: list[Any]


def _text(content: Any) -> str:
    if isinstance(content, _Argument):
        return plain(content.value)
    return text_of(content) if content is None or isinstance(content, list) else plain(content)


Address = tuple[Place, int, int, str]  # place, step, number of the call or result, name of the argument


def addresses_of(trajectory: Trajectory, places: frozenset[Place]) -> list[Address]:
    """The address of each text of the transcript, in the same order."""
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
