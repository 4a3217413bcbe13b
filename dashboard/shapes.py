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
    """One line, its text showable; `tone`: a verdict, `none` for what is absent, `log` for output of programs."""

    label: str
    text: str
    tone: str = ""


class Section(msgspec.Struct, frozen=True):
    """Facts under a heading; `folded` until someone opens it."""

    title: str
    facts: list[Fact]
    folded: bool = False
