"""Looks for the patterns of all rules in a batch at once, and says of each rule where it was found.

Every rule is a check of its own, and asks for itself; the scan runs at the first question and its answers are kept for as
long as the batch lives. What the prefilter names is decided by RE2 when the rule asks, on each field alone.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any
from weakref import WeakKeyDictionary, ref

from inspector.check import Batch, Span, Trajectory
from inspector.signatures.places import Place
from inspector.signatures.prefilter import Prefilter, prefilter
from inspector.signatures.regex import Pattern
from inspector.signatures.surfaces import SURFACES, Surface

SPANS = 5  # of one rule in one trajectory; more of the same says nothing new
SPAN_CHARS = 500


@dataclass(frozen=True, slots=True)
class Sought:
    """What one rule looks for."""

    patterns: tuple[Pattern, ...]  # any of them
    unless: tuple[Pattern, ...]  # none of them on the lines that a match touches
    places: frozenset[Place]


@dataclass(slots=True)
class _Layer:
    """All patterns that are sought on one surface, and the places that any of them wants."""

    surface: Surface
    patterns: list[Pattern] = field(default_factory=list)
    rules: list[int] = field(default_factory=list)  # whose pattern it is
    places: frozenset[Place] = frozenset()
    prefilter: Prefilter | None = None


_Scan = dict[int, list[tuple[int, "_Joined"]]]  # rule -> the trajectories in which one of its patterns may match


def _no_batch() -> None:
    """Nothing was asked yet."""


class Scanner:
    """The patterns of many rules. Rules may be added until the first scan and after it; what is compiled is then made anew."""

    def __init__(self, *, fast: bool | None = None) -> None:
        self._fast = fast  # hyperscan: True, False, or None where it is installed
        self._sought: list[Sought] = []
        self._layers = [_Layer(surface) for surface in SURFACES]
        self._scans: WeakKeyDictionary[Batch, dict[int, _Scan]] = WeakKeyDictionary()
        self._asked: list[tuple[int, ...]] = []  # the layers of each rule
        self._last: tuple[Callable[[], Batch | None], dict[int, _Scan]] = (_no_batch, {})  # the batch that was asked of last
        self._lock = threading.RLock()

    def add(self, sought: Sought) -> int:
        """The number by which the rule asks."""
        with self._lock:
            number = len(self._sought)
            self._sought.append(sought)
            for layer in self._layers:
                if wanted := sought.places & layer.surface.places:
                    layer.patterns += sought.patterns
                    layer.rules += [number] * len(sought.patterns)
                    layer.places |= wanted
                    layer.prefilter = None
            self._asked.append(tuple(at for at, layer in enumerate(self._layers) if sought.places & layer.surface.places))
            self._scans.clear()
            self._last = (_no_batch, {})
            return number

    def found(self, batch: Batch, number: int) -> Sequence[tuple[Trajectory, list[Span]]]:
        """The trajectories of the batch in which this rule's patterns stand, with the first places."""
        places: dict[int, list[Span]] = {}
        for at in self._asked[number]:
            for row, joined in self._scan(batch, at).get(number, ()):
                places.setdefault(row, []).extend(joined.spans(self._sought[number]))
        return [(batch[row], spans[:SPANS]) for row, spans in sorted(places.items()) if spans] if places else ()

    def _scan(self, batch: Batch, at: int) -> _Scan:
        last, scans = self._last
        if last() is not batch:
            with self._lock:
                scans = self._scans.setdefault(batch, {})
                self._last = (ref(batch), scans)
        if at not in scans:
            with self._lock:
                scans[at] = _scanned(batch, self._layers[at], self._prefilter(self._layers[at]))
        return scans[at]

    def _prefilter(self, layer: _Layer) -> Prefilter:
        if layer.prefilter is None:
            layer.prefilter = prefilter(layer.patterns, fast=self._fast)
        return layer.prefilter


def _scanned(batch: Batch, layer: _Layer, using: Prefilter) -> _Scan:
    rows: _Scan = {}
    candidates, texts_of, places, rules = using.candidates, layer.surface.texts, layer.places, layer.rules
    for row, trajectory in enumerate(batch):
        texts, text, data = texts_of(trajectory, places)
        if numbers := candidates(text, data):
            joined = _Joined(trajectory, texts, data, layer)
            for rule in dict.fromkeys(rules[number] for number in numbers):
                rows.setdefault(rule, []).append((row, joined))
    return rows


class _Joined:
    """The joined text of one trajectory, with the borders of its fields."""

    def __init__(self, trajectory: Trajectory, texts: Sequence[str], data: bytes, layer: _Layer) -> None:
        self._trajectory, self._texts, self._data, self._layer = trajectory, texts, data, layer

    @cached_property
    def _addresses(self) -> Sequence[Any]:
        return self._layer.surface.addresses(self._trajectory, self._layer.places)

    @cached_property
    def _starts(self) -> list[int]:
        plain = len(self._data) == sum(map(len, self._texts)) + max(0, len(self._texts) - 1)  # as many bytes as characters
        sizes = map(len, self._texts) if plain else (len(text.encode("utf-8", "replace")) for text in self._texts)
        return list(accumulate((size + 1 for size in sizes), initial=0))

    def spans(self, sought: Sought) -> list[Span]:
        """Where the rule's patterns stand, each field read alone, in reading order."""
        found = [(number, span) for pattern in sought.patterns for number, span in self._of_pattern(pattern, sought)]
        found.sort(key=lambda one: (one[0], one[1].start))
        return list(dict.fromkeys(span for _, span in found))[:SPANS]

    def _of_pattern(self, pattern: Pattern, sought: Sought) -> Iterator[tuple[int, Span]]:
        given, start = 0, 0
        while given < SPANS and (candidate := pattern.wide.search(self._data, start)):
            number = bisect_right(self._starts, candidate.start()) - 1
            start = self._starts[number + 1]
            if self._addresses[number][0] in sought.places:
                for span in self._in_field(number, pattern, sought):
                    yield number, span
                    given += 1
                    if given == SPANS:
                        break
            if start > len(self._data):
                return

    def _in_field(self, number: int, pattern: Pattern, sought: Sought) -> Iterator[Span]:
        data = self._data[self._starts[number] : self._starts[number + 1] - 1]
        for match in pattern.exact.finditer(data):
            start, end = match.span()
            if start < end and not _excused(data, start, end, sought.unless):
                text = self._texts[number]
                if not text.isascii():
                    start, end = len(data[:start].decode()), len(data[:end].decode())
                end = min(end, start + SPAN_CHARS)
                yield self._layer.surface.field(self._addresses[number]).span(start, end, text[start:end])


def _excused(data: bytes, start: int, end: int, unless: Sequence[Pattern]) -> bool:
    if not unless:
        return False
    until = data.find(b"\n", end)
    lines = data[data.rfind(b"\n", 0, start) + 1 : until if until >= 0 else len(data)]
    return any(pattern.exact.search(lines) for pattern in unless)
