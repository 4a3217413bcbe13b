"""Reads a trajectory's actions once, and keeps them for as long as it lives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from inspector.actions import program, shell
from inspector.actions.calls import of_call
from inspector.actions.fenced import acts_by_fences, of_message
from inspector.actions.words import Action, Kind, Passage, Unread
from inspector.trajectory import Source, Step, Trajectory
from inspector.verdict import Span

ACTIONS = 20_000  # of one trajectory
_EDIT = re.compile(r"\s*edit(?: (\d+:\d+|\S+ \d+:\d+))?[ \t]*\n(.*?)\n?end_of_edit\s*", re.DOTALL)
_OPEN = re.compile(r"\s*(?:open|create)\s+[\"']?([^\s\"']+)")


@dataclass(frozen=True, slots=True)
class Actions:
    """Everything that the agent did, in order; what compaction copied is left out."""

    done: tuple[Action, ...]
    unread: tuple[Unread, ...] = ()  # what could not be parsed, and was read as text alone

    def of(self, *kinds: Kind) -> Iterator[Action]:
        """The actions of these kinds."""
        return (action for action in self.done if action.kind in kinds)


_KEPT: WeakKeyDictionary[Trajectory, Actions] = WeakKeyDictionary()


def actions(trajectory: Trajectory) -> Actions:
    """What the agent did; read once for all checks."""
    kept = _KEPT.get(trajectory)
    if kept is None:
        kept = _KEPT[trajectory] = _read(trajectory)
    return kept


def _read(trajectory: Trajectory) -> Actions:
    shell.start_anew()
    program.start_anew()
    done: list[Action] = []
    unread: list[Unread] = []
    for found in _found(trajectory):
        if isinstance(found, Unread):
            unread.append(found)
        elif len(done) < ACTIONS:
            done.append(found)
        else:
            unread.append(Unread(found.span, f"more than {ACTIONS} actions: the rest was not read"))
            break
    return Actions(tuple(done), tuple(unread))


def _found(trajectory: Trajectory) -> Iterator[Action | Unread]:
    fences = acts_by_fences(trajectory)
    steps = trajectory.steps
    opened = ""  # the file that SWE-agent's `edit` speaks of
    for at, step in trajectory.own_steps:
        if fences:
            yield from of_message(step, at, answered=_answered(step, steps[at + 1] if at + 1 < len(steps) else None))
        for number, call in enumerate(step.tool_calls or ()):
            line = call.arguments.get("command")
            if isinstance(line, str) and (edit := _EDIT.fullmatch(line)):
                yield _windowed(edit, opened, Passage(line, Span(step=at, field=f"tool_calls[{number}].arguments.command")))
                continue
            if isinstance(line, str) and (named := _OPEN.match(line)):
                opened = named[1]
            yield from of_call(call, at, number)


def _answered(step: Step, after: Step | None) -> bool:
    return step.observation is not None or (after is not None and after.source is not Source.AGENT)


def _windowed(edit: re.Match[str], opened: str, passage: Passage) -> Action:
    return Action(Kind.EDIT, passage.span(*edit.span(2)), path=opened, text=edit[2], via="edit", verbatim=True)
