"""What the components are given; every text in them is showable already."""

from __future__ import annotations

import msgspec


class ShownSpan(msgspec.Struct, frozen=True):
    """Characters [start, end) of `field` of the step at position `step`, as in the finding; `label` and `quote` are showable."""

    step: int
    field: str
    start: int
    end: int
    label: str
    quote: str


class ShownFinding(msgspec.Struct, frozen=True):
    """A finding, its texts showable."""

    message: str
    tier: str
    cause: str
    check: str
    score: str
    spans: list[ShownSpan]


class Title(msgspec.Struct, frozen=True):
    """What stands above a transcript, its texts showable."""

    task: str
    place: str
    verdict: str


class QueueRow(msgspec.Struct, frozen=True):
    """One line, every text of it showable."""

    key: str
    address: str
    verdict: str
    probability: str
    why: str
    source: str  # check, tier and cause of the worst finding
    place: str  # environment version and task
    run: str
    reward: str
    scored: bool
    size: str
    action: str
    received: str


class Fact(msgspec.Struct, frozen=True):
    """One line, its text showable. `tone`: a verdict; `none` for what is absent, `log` for output of programs, `command` for what is copied whole, or
    `wide` for a sentence without a label."""

    label: str
    text: str
    tone: str = ""


class Section(msgspec.Struct, frozen=True):
    """Facts under a heading; `folded` until someone opens it."""

    title: str
    facts: list[Fact]
    folded: bool = False


class Chip(msgspec.Struct, frozen=True):
    """A short word, showable; `tone` as a fact's."""

    text: str
    tone: str = ""


class Cell(msgspec.Struct, frozen=True):
    """What stands in one column of a line, its texts showable; `note` is small and below."""

    text: str = ""
    note: str = ""
    tone: str = ""
    chips: list[Chip] = []


class ListRow(msgspec.Struct, frozen=True):
    """A line of a list. `key` is what the page calls it by; it is not shown, and is foreign text as it came."""

    key: str
    cells: list[Cell]
    address: str = ""  # of what opens; one that we wrote


class Listing(msgspec.Struct, frozen=True):
    """A list under its title; `kind` names the widths of its columns."""

    kind: str
    title: Cell
    heads: list[str]
    rows: list[ListRow]
    empty: str = ""
