"""Where a rule may look: the texts of a transcript, and what the agent did with its tools."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from inspector.check import Span


class Place(StrEnum):
    """The first six are texts as they were posted, the others are read from the agent's actions."""

    MESSAGE = "message"  # of the agent
    PROMPT = "prompt"  # a message of the system or the user
    REASONING = "reasoning"
    TOOL = "tool"  # the name of the tool that the agent called
    ACTION = "action"  # an argument of a call, whatever it says
    OBSERVATION = "observation"
    COMMAND = "command"  # one simple command of a shell line (a pipeline is several), or a program that was run
    WRITE_PATH = "write.path"  # of a file that was written, edited, moved to or deleted
    WRITE_CONTENT = "write.content"  # what was put into a file: the whole of it, or the lines that an edit added
    EDIT_REMOVED = "edit.removed"  # the lines that an edit took out
    READ_PATH = "read.path"


TRANSCRIPT = (Place.MESSAGE, Place.PROMPT, Place.REASONING, Place.TOOL, Place.ACTION, Place.OBSERVATION)
DEEDS = tuple(place for place in Place if place not in TRANSCRIPT)


class Field(NamedTuple):
    """One text's place and its address, as spans write it."""

    place: Place
    step: int
    name: str
    offset: int = 0  # where the text begins in the field, in characters
    fixed: Span | None = None  # where the text is not a piece of the field: the place that it was read from

    def span(self, start: int, end: int, quote: str) -> Span:
        """Characters [start, end) of the text, as they stand in the field."""
        return self.fixed or Span(step=self.step, field=self.name, start=self.offset + start, end=self.offset + end, quote=quote)
