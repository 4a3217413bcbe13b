"""What the checks of a batch share: each transcript walked once, for its text and for the lengths of its parts."""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

from inspector.check import Batch, Trajectory
from inspector.trajectory import Source, text_of

WIDTH = 6  # numbers of a step: agent, message, reasoning, arguments, observation, calls


class Transcripts(NamedTuple):
    """A list for the trajectories of a batch, or for their steps one after another."""

    texts: list[bytes]  # what is said, done and seen, joined by line feeds, as UTF-8
    lengths: list[int]  # WIDTH numbers a step, in characters
    steps: list[int]
    commands: list[int]  # distinct ones


_walked: WeakKeyDictionary[Batch, Transcripts] = WeakKeyDictionary()


def transcripts(batch: Batch) -> Transcripts:
    """Of this batch; walked at the first question."""
    found = _walked.get(batch)
    if found is None:
        found = _walked[batch] = Transcripts([], [], [], [])
        for trajectory in batch:
            _walk(trajectory, found)
    return found


def _walk(trajectory: Trajectory, into: Transcripts) -> None:
    pieces: list[str] = []
    distinct: set[str] = set()
    lengths, add = into.lengths, pieces.append
    for step in trajectory.document.steps:
        said = thought = done = seen = 0
        if (message := step.message) is not None:
            add(message if type(message) is str else (message := text_of(message)))
            said = len(message)
        if (reasoning := step.reasoning_content) is not None:
            add(reasoning)
            thought = len(reasoning)
        if calls := step.tool_calls:
            for call in calls:
                for value in call.arguments.values():
                    if type(value) is str:
                        add(value)
                        distinct.add(value)
                        done += len(value)
        if (observation := step.observation) is not None:
            for result in observation.results:
                if (content := result.content) is not None:
                    add(content if type(content) is str else (content := text_of(content)))
                    seen += len(content)
        lengths += (step.source is Source.AGENT, said, thought, done, seen, len(calls) if calls else 0)
    if not trajectory.document.steps:
        lengths += (0,) * WIDTH  # as one silent step: a minimum and a mean need something to be of
    into.texts.append("\n".join(pieces).encode("utf-8", "replace"))
    into.steps.append(len(trajectory.document.steps) or 1)
    into.commands.append(len(distinct))
