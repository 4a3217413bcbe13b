"""The texts of a trajectory in which patterns are looked for, and where each of them stands.

Building the texts is on the hot path of every audit and names nothing; the names are made for the few that hold something.
Steps that compaction copied are left out.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from inspector.signatures.places import Field, Place
from inspector.step_texts import plain
from inspector.trajectory import Source, Step, Trajectory, text_of


class Transcript(NamedTuple):
    """All its texts, in reading order."""

    texts: list[str]
    joined: str  # by line feeds
    data: bytes  # that, as UTF-8
    marks: list[int]  # of each text: the step's position times KINDS, and the number of its kind
    sizes: list[int]  # of each text, in characters
    plain: bool  # nothing but texts stood there


KINDS = 8
SAID, THOUGHT, CALLED, DID, SEEN = range(5)  # message, reasoning, tool, argument, observation
_KEPT: WeakKeyDictionary[Trajectory, Transcript] = WeakKeyDictionary()
_PACK = msgspec.msgpack.Encoder()


def transcript(trajectory: Trajectory) -> Transcript:
    """Read once for all who ask."""
    kept = _KEPT.get(trajectory)
    if kept is None:
        kept = _KEPT[trajectory] = _read(trajectory)
    return kept


def content_hash(trajectory: Trajectory) -> bytes:
    """16 bytes that are equal for the same steps under other ids and times: sources, words, actions and what came back, in order."""
    read, steps = transcript(trajectory), trajectory.document.steps
    if not read.plain:
        return hashlib.sha256(_packed(trajectory)).digest()[:16]
    sources = [step.source for step in steps if not step.is_copied_context]
    names = [tuple(call.arguments) for step in steps if step.tool_calls and not step.is_copied_context for call in step.tool_calls]
    shape = _PACK.encode((sources, names, array("q", read.sizes).tobytes(), array("q", read.marks).tobytes()))
    found = hashlib.sha256(shape)  # twice as fast as blake2b wherever the processor has SHA instructions
    found.update(read.data)
    return found.digest()[:16]


def _packed(trajectory: Trajectory) -> bytes:
    """The steps with values of every kind."""
    said = [_said(step) for _, step in trajectory.own_steps]
    try:
        return _PACK.encode(said)
    except OverflowError:  # an integer above 64 bits among the arguments
        return msgspec.json.encode(said)


def _said(step: Step) -> tuple[Any, ...]:
    calls, observation = step.tool_calls, step.observation
    return (
        step.source,
        step.message,
        step.reasoning_content,
        [(call.function_name, call.arguments) for call in calls] if calls else None,
        [result.content for result in observation.results] if observation else None,
    )


def _read(trajectory: Trajectory) -> Transcript:
    found, marks = _contents(trajectory)
    try:
        joined = "\n".join(found)
        plain = True
    except TypeError:  # parts, numbers, nothing at all: rare, and told apart only here
        found = [text if isinstance(text, str) else _text(text) for text in found]
        joined, plain = "\n".join(found), False
    return Transcript(found, joined, joined.encode("utf-8", "replace"), marks, list(map(len, found)), plain)


def _contents(trajectory: Trajectory) -> tuple[list[Any], list[int]]:
    found: list[Any] = []
    marks: list[int] = []
    add, mark = found.append, marks.append
    for at, step in enumerate(trajectory.document.steps):
        if step.is_copied_context:
            continue
        at *= KINDS
        if (message := step.message) is not None:
            add(message)
            mark(at)
        if (thought := step.reasoning_content) is not None:
            add(thought)
            mark(at + THOUGHT)
        for call in step.tool_calls or ():
            add(call.function_name)
            mark(at + CALLED)
            for value in call.arguments.values():
                add(_Argument(value) if type(value) is list else value)
                mark(at + DID)
        if (observation := step.observation) is not None:
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


def addresses_of(trajectory: Trajectory) -> list[Address]:
    """The address of each text of the transcript, in the same order."""
    return list(_addresses(trajectory))


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
