"""The texts of a batch, read once for the checks that share them."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from inspector.check import Batch, Trajectory
from inspector.trajectory import text_of

_read: WeakKeyDictionary[Batch, list[bytes]] = WeakKeyDictionary()


def texts(batch: Batch) -> list[bytes]:
    """What each trajectory of the batch says, does and sees, joined by line feeds, as UTF-8."""
    if batch not in _read:
        _read[batch] = ["\n".join(_pieces(trajectory)).encode("utf-8", "replace") for trajectory in batch]
    return _read[batch]


def _pieces(trajectory: Trajectory) -> list[str]:
    pieces: list[str] = []
    add = pieces.append
    for step in trajectory.document.steps:
        if (message := step.message) is not None:
            add(message if type(message) is str else text_of(message))
        if step.reasoning_content is not None:
            add(step.reasoning_content)
        for call in step.tool_calls or ():
            pieces += [value for value in call.arguments.values() if type(value) is str]
        if step.observation is not None:
            for result in step.observation.results:
                if (content := result.content) is not None:
                    add(content if type(content) is str else text_of(content))
    return pieces
