"""Code blocks in an agent's message, for harnesses without tool calls: they run what stands between the fences."""

from __future__ import annotations

import re
from collections.abc import Iterator

from inspector.actions import program
from inspector.actions.effects import of_shell
from inspector.actions.words import Action, Passage, Unread
from inspector.trajectory import Source, Step, Trajectory, text_of
from inspector.verdict import Span

MESSAGE_CHARS = 1 << 18
_FENCE = re.compile(r"^```[ \t]*([A-Za-z0-9_+-]*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SHELLS = {"bash", "sh", "shell", "zsh", "console", "terminal", "mswea_bash_command"}
_PYTHONS = {"python", "py", "python3", "ipython"}


def acts_by_fences(trajectory: Trajectory) -> bool:
    """Whether nobody called a tool: then what the message says is what the harness ran."""
    return not any(step.tool_calls for step in trajectory.steps)


def of_message(step: Step, at: int, *, answered: bool) -> Iterator[Action | Unread]:
    """What the blocks of a message do; a message that nothing answers was not run."""
    text = text_of(step.message) if answered and step.source is Source.AGENT else ""
    if "```" not in text or len(text) > MESSAGE_CHARS:
        return
    whole = Passage(text, Span(step=at, field="message"))
    for block in _FENCE.finditer(text):
        if block[1].lower() in _SHELLS:
            yield from of_shell(whole.piece(*block.span(2)))
        elif block[1].lower() in _PYTHONS:
            yield from program.of_python(whole.piece(*block.span(2)), of_shell)
