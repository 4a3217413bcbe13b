"""Reads a trajectory's actions as far as somebody asks, each call once, and keeps them for as long as it lives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice, zip_longest
from typing import Any
from weakref import WeakKeyDictionary

from inspector.actions import allowance
from inspector.actions.allowance import Allowance
from inspector.actions.calls import line_of, of_call
from inspector.actions.fenced import acts_by_fences, of_message
from inspector.actions.glance import may_change, may_hold
from inspector.actions.words import Action, Kind, Passage, Unread
from inspector.trajectory import Source, Step, Trajectory
from inspector.verdict import Span

ACTIONS = 20_000  # of one trajectory
CHANGES = frozenset({Kind.WRITE, Kind.EDIT, Kind.DELETE})
_EDIT = re.compile(r"\s*edit(?: (\d+:\d+|\S+ \d+:\d+))?[ \t]*\n(.*?)\n?end_of_edit\s*", re.DOTALL)
_WINDOWED = ("edit", "open", "crea")
_OPEN = re.compile(r"\s*(?:open|create)\s+[\"']?([^\s\"']+)")
Found = Action | Unread


# One tool call, or the blocks of one message: what reads it, what that takes, and the shell line where it is nothing else.
_Deed = tuple[Callable[..., Iterator[Found]], tuple[Any, ...], str | None]


class Actions:
    """Everything that the agent did, in order; what compaction copied is left out."""

    def __init__(self, deeds: Sequence[_Deed]) -> None:
        self._deeds = deeds
        self._found: dict[int, tuple[Found, ...]] = {}
        self._allowance = Allowance()
        self._left = ACTIONS

    def of(self, *kinds: Kind, word: str = "") -> Iterator[Action]:
        """The actions of these kinds. With a word, those that do not have it in a command, a path or a text may be left out: many are then never parsed."""
        return (found for at in self._worth(kinds, word) for found in self._read(at) if isinstance(found, Action) and found.kind in kinds)

    @cached_property
    def done(self) -> tuple[Action, ...]:
        """All of them."""
        return tuple(found for at in range(len(self._deeds)) for found in self._read(at) if isinstance(found, Action))

    @cached_property
    def unread(self) -> tuple[Unread, ...]:
        """What could not be parsed, and was read as text alone."""
        return tuple(found for at in range(len(self._deeds)) for found in self._read(at) if isinstance(found, Unread))

    def _worth(self, kinds: tuple[Kind, ...], word: str) -> Sequence[int]:
        """The deeds that may hold such actions."""
        if CHANGES.issuperset(kinds):
            return self._changing
        if word and may_hold(self._lines, word):
            return [at for at, (_, _, line) in enumerate(self._deeds) if line is None or may_hold(line, word)]
        return self._others if word else range(len(self._deeds))

    @cached_property
    def _changing(self) -> Sequence[int]:
        if not may_change(self._lines):
            return self._others
        return [at for at, (_, _, line) in enumerate(self._deeds) if line is None or may_change(line)]

    @cached_property
    def _others(self) -> Sequence[int]:
        return [at for at, (_, _, line) in enumerate(self._deeds) if line is None]

    @cached_property
    def _lines(self) -> str:
        return "\n".join([line for _, _, line in self._deeds if line is not None])

    def _read(self, at: int) -> tuple[Found, ...]:
        if at not in self._found:
            allowance.draw_on(self._allowance)
            read, arguments, _ = self._deeds[at]
            self._found[at] = tuple(self._bounded(read(*arguments))) if self._left >= 0 else ()
            self._left -= len(self._found[at])
        return self._found[at]

    def _bounded(self, found: Iterator[Found]) -> Iterator[Found]:
        yield from islice(found, self._left)
        if more := next(found, None):
            yield Unread(more.span, f"more than {ACTIONS} actions: the rest was not read")


_KEPT: WeakKeyDictionary[Trajectory, Actions] = WeakKeyDictionary()


def actions(trajectory: Trajectory) -> Actions:
    """What the agent did; read once for all checks."""
    kept = _KEPT.get(trajectory)
    if kept is None:
        kept = _KEPT[trajectory] = Actions(_deeds(trajectory))
    return kept


def _deeds(trajectory: Trajectory) -> list[_Deed]:
    if acts_by_fences(trajectory):
        return _messages(trajectory)
    found: list[_Deed] = []
    opened = ""  # the file that SWE-agent's `edit` speaks of
    for at, step in enumerate(trajectory.document.steps):
        if not (calls := step.tool_calls) or step.is_copied_context:
            continue
        for number, call in enumerate(calls):
            command = call.arguments.get("command")
            if isinstance(command, str) and command.lstrip()[:4] in _WINDOWED:
                if edit := _EDIT.fullmatch(command):
                    place = Span(step=at, field=f"tool_calls[{number}].arguments.command")
                    found.append((_windowed, (edit, opened, Passage(command, place)), None))
                    continue
                if named := _OPEN.match(command):
                    opened = named[1]
            found.append((of_call, (call, at, number), line_of(call)))
    return found


def _messages(trajectory: Trajectory) -> list[_Deed]:
    steps = trajectory.steps
    answered = [_answered(step, after) for step, after in zip_longest(steps, steps[1:])]
    return [(partial(of_message, answered=answered[at]), (step, at), None) for at, step in trajectory.own_steps]


def _answered(step: Step, after: Step | None) -> bool:
    return step.observation is not None or (after is not None and after.source is not Source.AGENT)


def _windowed(edit: re.Match[str], opened: str, passage: Passage) -> Iterator[Found]:
    yield Action(Kind.EDIT, passage.span(*edit.span(2)), path=opened, text=edit[2], via="edit", verbatim=True)
