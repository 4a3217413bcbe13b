"""Which updates a policy version descends from, where a trainer may have gone back to an earlier version at any time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar


class Told(Protocol):
    """An update as it was reported."""

    @property
    def policy_before(self) -> int: ...

    @property
    def policy_after(self) -> int: ...


Update = TypeVar("Update", bound=Told)


class _Made(NamedTuple):
    """A version that can be gone on from, with the position of the update that made it."""

    version: int
    at: int


def parents(updates: Sequence[Told]) -> list[int | None]:
    """For each update, in the order in which they were told, the position of the one whose version it began from; None for where the run began.

    An update that begins from an earlier version than the newest leaves behind all that came after that version. Where
    the report of the version that it began from is missing, it is taken to descend from the newest one before it.
    """
    made: list[_Made] = []
    found: list[int | None] = []
    for at, update in enumerate(updates):
        while made and made[-1].version > update.policy_before:
            made.pop()
        found.append(made[-1].at if made else None)
        made.append(_Made(update.policy_after, at))
    return found


def inherits(updates: Sequence[Told], bad: Sequence[bool]) -> list[bool]:
    """Whether the version that each update began from descends from one that is bad."""
    tainted: list[bool] = []
    inherited: list[bool] = []
    for parent, own in zip(parents(updates), bad, strict=True):
        inherited.append(parent is not None and tainted[parent])
        tainted.append(own or inherited[-1])
    return inherited


def line(updates: Sequence[Update]) -> list[Update]:
    """The updates that the newest version descends from, oldest first, itself included."""
    found: list[Update] = []
    back = parents(updates)
    at: int | None = len(updates) - 1 if updates else None
    while at is not None:
        found.append(updates[at])
        at = back[at]
    return found[::-1]
