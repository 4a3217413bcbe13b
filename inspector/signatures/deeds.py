"""The texts of an agent's actions, for rules that look at what was run and changed and not at all that was said."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.actions import CHANGES, Action, Kind, actions
from inspector.signatures.places import Field, Place
from inspector.trajectory import Trajectory


def texts_of(trajectory: Trajectory, places: frozenset[Place]) -> tuple[list[str], str, bytes]:
    """The texts of those places in the order of the actions, and all of them joined by line feeds, also as UTF-8."""
    texts = [text for place, text, _ in _texts(trajectory, places) if place in places]
    joined = "\n".join(texts)
    return texts, joined, joined.encode("utf-8", "replace")


def addresses_of(trajectory: Trajectory, places: frozenset[Place]) -> list[tuple[Place, Action]]:
    """The place and the action of each text that `texts_of` gives, in the same order."""
    return [(place, action) for place, _, action in _texts(trajectory, places) if place in places]


_CHANGED = frozenset({Place.WRITE_PATH, Place.WRITE_CONTENT, Place.EDIT_REMOVED})


def _texts(trajectory: Trajectory, places: frozenset[Place]) -> Iterator[tuple[Place, str, Action]]:
    read = actions(trajectory)
    for action in read.of(*CHANGES) if places <= _CHANGED else read.done:
        if action.kind in (Kind.COMMAND, Kind.CODE):
            yield Place.COMMAND, action.text, action
        elif action.kind is Kind.READ:
            yield Place.READ_PATH, action.path, action
        elif action.kind in (Kind.WRITE, Kind.EDIT, Kind.DELETE):
            yield Place.WRITE_PATH, action.path, action
            if action.text:
                yield Place.WRITE_CONTENT, action.text, action
            if action.removed:
                yield Place.EDIT_REMOVED, action.removed, action


def field_at(address: tuple[Place, Action]) -> Field:
    """Where the record says so."""
    place, action = address
    span = action.span
    if place is Place.COMMAND and action.verbatim:
        return Field(place, span.step, span.field, span.start)
    return Field(place, span.step, span.field, fixed=span)
