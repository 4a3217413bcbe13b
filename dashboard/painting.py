"""Makes a foreign text showable and says where each of its characters went, so that spans still mark what they marked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from inspector.showable import showable

_PLAIN = re.compile(r"[\n\t\x20-\x7e]+")
_VARIATION = "\ufe0e\ufe0f"  # whether one of these is shown depends on the character before it


class Piece(NamedTuple):
    """From the character at `source` on, every one takes `width` UTF-16 units of the shown text, whose first is at `shown`."""

    source: int
    shown: int
    width: int


class Painted(NamedTuple):
    """A text as it is shown, and the way there; no pieces where every character is one unit at its own place."""

    text: str
    pieces: tuple[Piece, ...]


def paint(text: str) -> Painted:
    """`text` made showable, with line feeds and tabs kept."""
    shown = showable(text, lines=True)
    if shown == text and (text.isascii() or max(text) <= "\uffff"):
        return Painted(text, ())
    return Painted(shown, tuple(_pieces(text)))


def _pieces(text: str) -> Iterator[Piece]:
    at, shown, last = 0, 0, 0
    for width, count in _runs(text):
        if width != last:
            yield Piece(at, shown, width)
        at, shown, last = at + count, shown + width * count, width


def _runs(text: str) -> Iterator[tuple[int, int]]:
    """(units of each, how many) of the characters, in order."""
    at = 0
    while at < len(text):
        if plain := _PLAIN.match(text, at):
            yield 1, plain.end() - at
            at = plain.end()
            continue
        before = text[at - 1] if at and text[at - 1] in _VARIATION else ""
        written = showable(before + text[at], lines=True)[len(showable(before, lines=True)) :]
        yield units(written), 1
        at += 1


def units(text: str) -> int:
    """The length as JavaScript counts it."""
    return len(text) + sum(char > "\uffff" for char in text)


def place(pieces: Sequence[Piece], offset: int) -> int:
    """Where the character at `offset` begins in the shown text, in UTF-16 units; what the component does in the browser."""
    found = None
    for piece in pieces:
        if piece.source > offset:
            break
        found = piece
    return offset if found is None else found.shown + (offset - found.source) * found.width
