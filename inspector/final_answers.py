"""What an episode answered, where its answer is all that could be graded: the agent called no tool.

Answers are compared as people would: by what stands in the last marked place (`\\boxed{…}`, `<answer>…</answer>`,
`#### …`), else by the whole last message where that is short, without regard to case, width, space, quotes and the marks that end a sentence.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import NamedTuple

from inspector.trajectory import Source, Trajectory, text_of

MARKS = (
    re.compile(r"<answer>(.*?)</answer>", re.DOTALL | re.IGNORECASE),
    re.compile(r"\\boxed\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}"),
    re.compile(r"^####[ \t]*(.+)$", re.MULTILINE),
)
AROUND = re.compile(r"^[\s\"'`*]+|[\s\"'`*.,;:!?]+$")  # not what a number begins with
WHOLE = 500  # characters of a message that is an answer as it stands
LONGEST = 100_000  # characters in which a mark is looked for, from the end


class Answered(NamedTuple):
    """A final answer, and where it stands."""

    step: int  # position in `trajectory.steps`
    start: int  # characters of the step's message
    end: int
    text: str  # normalised; empty where nothing was said, which a verifier may pay for too


def final_answer(trajectory: Trajectory) -> Answered | None:
    """Of the last thing that the agent said; None where it called tools, or gave no answer."""
    mine = [(at, step) for at, step in enumerate(trajectory.document.steps) if step.source is Source.AGENT]
    if not mine or any(step.tool_calls for _, step in mine):
        return None
    at, last = mine[-1]
    message = text_of(last.message)
    place = _marked(message)
    return Answered(at, *place, normalised(message[slice(*place)])) if place else None


def normalised(answer: str) -> str:
    """The same for answers that people would call the same; empty where nothing but punctuation was said."""
    return " ".join(AROUND.sub("", unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", answer).casefold())).split())


def digest(answer: str) -> bytes:
    """Eight bytes of a normalised answer."""
    return hashlib.sha256(answer.encode("utf-8", "surrogatepass")).digest()[:8]


def _marked(message: str) -> tuple[int, int] | None:
    """Characters of the answer; None where a long text marks none."""
    first = max(0, len(message) - LONGEST)
    found = [last for mark in MARKS if (last := list(mark.finditer(message, first))[-1:])]
    whole = (0, len(message)) if len(message) <= WHOLE else None
    return max((hit[0].span(1) for hit in found), default=whole)
