"""Tells which patterns may match somewhere in a joined text: hyperscan where there is a wheel, RE2's set elsewhere.

Both find whatever the wide form of a pattern finds, so what is decided afterwards is the same with either. Hyperscan folds
the case of ASCII letters alone; the two other characters that RE2 folds onto them (ſ and the Kelvin sign) send a text to the set.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Protocol

import re2

from inspector.signatures import compiled_cache
from inspector.signatures.regex import BadPattern, Pattern

try:
    import hyperscan
except ImportError:  # no wheel for this machine
    hyperscan = None  # type: ignore[assignment]

SET_MEMORY = 256 << 20  # bytes; at RE2's default a few hundred rules do not compile
_FOLDED = ("\u017f", "\u212a")


class Prefilter(Protocol):
    """What a scanner asks."""

    def candidates(self, text: str, data: bytes) -> list[int]:
        """Positions of the patterns that may match; `data` is the text as UTF-8."""
        ...


def available() -> bool:
    """Whether hyperscan is installed here."""
    return hyperscan is not None


def prefilter(patterns: Sequence[Pattern], *, fast: bool | None = None) -> Prefilter:
    """Over all patterns at once; `fast` None takes hyperscan where it is installed."""
    return HyperscanFilter(patterns) if (available() if fast is None else fast) else SetFilter(patterns)


class SetFilter:
    """RE2's set, compiled at the first text."""

    def __init__(self, patterns: Sequence[Pattern], numbers: Sequence[int] | None = None) -> None:
        self._patterns = patterns
        self._numbers = list(range(len(patterns)) if numbers is None else numbers)
        self._set: Any = None

    def candidates(self, text: str, data: bytes) -> list[int]:
        """Positions of the patterns that may match."""
        if not self._numbers:
            return []
        if self._set is None:
            self._set = self._compiled()
        return sorted(self._numbers[found] for found in self._set.Match(data) or ())

    def _compiled(self) -> Any:
        options = re2.Options()
        options.max_mem = SET_MEMORY
        options.log_errors = False
        made = re2.Set.SearchSet(options)
        for number in self._numbers:
            made.Add(f"(?m){self._patterns[number].wide_source}")
        made.Compile()
        return made


class HyperscanFilter:
    """Hyperscan for what it reads as RE2 does, the set for the rest. One scratch a thread; a child process may go on with it."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        accepted = [number for number, pattern in enumerate(patterns) if pattern.plain]
        self._database, refused = _database(patterns, accepted)
        self._rest = SetFilter(patterns, sorted({*range(len(patterns))} - {*accepted} | {*refused}))
        self._all = SetFilter(patterns)
        self._scratches = threading.local()

    def candidates(self, text: str, data: bytes) -> list[int]:
        """Positions of the patterns that may match."""
        if not text.isascii() and any(char in text for char in _FOLDED):
            return self._all.candidates(text, data)
        found: list[int] = []
        if self._database is not None:
            add = found.append
            self._database.scan(data, match_event_handler=lambda number, *_: add(number), scratch=self._scratch())
        if rest := self._rest.candidates(text, data):
            found += rest
        return sorted(found) if len(found) > 1 else found

    def _scratch(self) -> Any:
        try:
            return self._scratches.own
        except AttributeError:
            self._scratches.own = hyperscan.Scratch(self._database)
            return self._scratches.own


def _flags() -> int:
    return int(hyperscan.HS_FLAG_SINGLEMATCH | hyperscan.HS_FLAG_MULTILINE | hyperscan.HS_FLAG_UTF8)


def _database(patterns: Sequence[Pattern], numbers: Sequence[int]) -> tuple[Any, list[int]]:
    """The compiled database, and the patterns that hyperscan refused."""
    if not numbers:
        return None, []
    sources = [patterns[number].wide_source.encode() for number in numbers]
    key = [version("hyperscan").encode(), str(_flags()).encode(), *(b"%d:%s" % (number, source) for number, source in zip(numbers, sources, strict=True))]
    cached = compiled_cache.read(key)
    if cached is not None and (database := _loaded(cached.data)) is not None:
        return database, list(cached.refused)
    refused: list[int] = []
    database = _compiled(numbers, sources)
    if database is None:
        refused = [number for number, source in zip(numbers, sources, strict=True) if _compiled([number], [source]) is None]
        left = [(number, source) for number, source in zip(numbers, sources, strict=True) if number not in refused]
        if not left:
            return None, refused
        database = _compiled([number for number, _ in left], [source for _, source in left])
        if database is None:
            raise BadPattern("hyperscan takes each pattern alone and not all together")
    compiled_cache.write(key, compiled_cache.Compiled(hyperscan.dumpb(database), tuple(refused)))
    return database, refused


def _compiled(numbers: Sequence[int], sources: Sequence[bytes]) -> Any:
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    try:
        database.compile(expressions=list(sources), ids=list(numbers), elements=len(numbers), flags=[_flags()] * len(numbers))
    except hyperscan.error:
        return None
    return database


def _loaded(data: bytes) -> Any:
    try:
        return hyperscan.loadb(data, hyperscan.HS_MODE_BLOCK)
    except hyperscan.error:
        return None  # made by another build or for another processor
