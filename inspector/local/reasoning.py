"""Takes an agent's reasoning out of a trajectory, before any check sees it.

Dropped are `reasoning_content`, thinking parts of a message and what harnesses keep of them under `extra`, in subagents
too. A `<think>` block within a message is blanked out rather than cut, so that what is found behind it keeps its place.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from inspector.trajectory import Content, Document, Source, Step, Trajectory

_BLOCK = re.compile(r"<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_OPENED_BEFORE = re.compile(r"\A((?!<think>).)*?</think>", re.DOTALL | re.IGNORECASE)  # chat templates swallow the opening mark
_KEYS = re.compile(r"reasoning(?!_effort)|thinking|thoughts?\Z|encrypted_content\Z", re.IGNORECASE)
_PARTS = frozenset({"thinking", "reasoning", "redacted_thinking", "reasoning_text"})
_FIELD = "reasoning_content"


def without_reasoning(trajectory: Trajectory) -> Trajectory:
    """The same episode, as if its agent's reasoning had not been recorded."""
    document = trajectory.document
    subagents = [_subagent(raw) for raw in document.subagent_trajectories] if document.subagent_trajectories else document.subagent_trajectories
    bare = msgspec.structs.replace(document, steps=[_step(step) for step in document.steps], subagent_trajectories=subagents)
    defects = [defect for defect in trajectory.defects if _FIELD not in defect.path]
    return Trajectory(trajectory.header, bare, defects=defects, unknown=trajectory.unknown, key=trajectory.key)


def _step(step: Step) -> Step:
    message = _said(step.message) if step.source is Source.AGENT else step.message
    return msgspec.structs.replace(step, reasoning_content=None, message=message, extra=_kept(step.extra))


def _kept(extra: dict[str, Any] | None) -> dict[str, Any] | None:
    return {name: value for name, value in extra.items() if not _KEYS.match(name)} if extra else extra


def _said(message: Content) -> Content:
    if isinstance(message, list):
        parts = [part for part in message if part.type not in _PARTS]
        return [msgspec.structs.replace(part, text=_blanked(part.text)) if part.text else part for part in parts]
    return _blanked(message) if message else message


def _blanked(text: str) -> str:
    if "<" not in text:
        return text
    return _OPENED_BEFORE.sub(_blank, _BLOCK.sub(_blank, text))


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


def _subagent(raw: msgspec.Raw) -> msgspec.Raw:
    """A subagent's document; what cannot be read as one is not passed on, since nobody knows what is in it."""
    try:
        bare = msgspec.json.decode(raw, type=Document)
    except (msgspec.DecodeError, RecursionError):
        return msgspec.Raw(b"{}")
    inner = [_subagent(one) for one in bare.subagent_trajectories or []] or None
    return msgspec.Raw(msgspec.json.encode(msgspec.structs.replace(bare, steps=[_step(step) for step in bare.steps], subagent_trajectories=inner)))
