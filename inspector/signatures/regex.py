"""Patterns of rules: RE2 syntax, refused with the rewrite where RE2 cannot take it, and their wider form for the prefilter.

The prefilter reads all fields of a trajectory at once, joined by line feeds. The *wide* form of a pattern finds there
whatever the pattern finds in one field, and perhaps more: `^`, `$`, `\\A` and `\\z` hold at every line end. Only RE2, on
the field alone, decides. Hyperscan reads some RE2 syntax in another way; patterns that use it are `plain=False` and are
prefiltered by RE2's own set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import re2

from inspector.errors import MisusedCheck

PATTERN_CHARS = 4000
MEMORY = 16 << 20  # of one compiled pattern, bytes
_SPACE, _NO_SPACE = r"\t\n\f\r ", r"\x00-\x08\x0b\x0e-\x1f\x21-\x{10ffff}"  # RE2's \s and \S; hyperscan's also take a vertical tab
_FOREIGN = "pPCQEX"  # classes by Unicode tables, and quoting: the two engines may differ
_PROBES = (b"", b"a", b" a", b"\n", b"-", b"a\nb")
_REWRITES = (
    (
        ("(?=", "(?!", "(?<=", "(?<!"),
        "RE2 has no look-around: match what stands around as well ('a(?=b)' as 'ab'), and name what must not be there under `unless`",
    ),
    (("(?>", "*+", "++", "?+"), "RE2 has no atomic groups and no possessive repeats, and does not need them: write (?:…) and plain repeats"),
    (("(?P=", "\\k<", *(f"\\{digit}" for digit in range(1, 10))), "RE2 has no back-references: write the alternatives out ('(a|b)\\1' as 'aa|bb')"),
    (("\\Z",), "RE2 knows only \\z for the end of the text"),
)


class BadPattern(MisusedCheck):
    """A pattern that RE2 cannot run, or that would match everywhere."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """One pattern, compiled."""

    source: str
    exact: Any  # decides, on the UTF-8 of one field
    wide: Any  # finds candidates in the joined text
    wide_source: str
    plain: bool  # hyperscan reads it as RE2 does


def compiled(source: str) -> Pattern:
    """Raises BadPattern, with the rewrite where there is one."""
    if len(source) > PATTERN_CHARS:
        raise BadPattern(f"{len(source)} characters; a pattern has at most {PATTERN_CHARS}")
    exact = _compile(source)
    if any(found.start() == found.end() for probe in _PROBES for found in exact.finditer(probe)):
        raise BadPattern(f"{source!r} matches the empty text, so it is found everywhere: repeat with + instead of *, or add what must stand there")
    wide_source, plain = _widened(source)
    return Pattern(source, exact, _compile(f"(?m){wide_source}"), wide_source, plain)


def _compile(source: str) -> Any:
    options = re2.Options()
    options.max_mem = MEMORY
    options.log_errors = False
    try:
        return re2.compile(source.encode(), options)
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace") if error.args and isinstance(error.args[0], bytes) else str(error)
        raise BadPattern(f"{source!r}: {_rewrite(source) or reason}") from error
    except UnicodeEncodeError as error:
        raise BadPattern(f"{source!r}: holds a lone surrogate") from error


def _rewrite(source: str) -> str | None:
    return next((advice for signs, advice in _REWRITES if any(sign in source for sign in signs)), None)


def _widened(source: str) -> tuple[str, bool]:
    """The pattern for joined text, and whether hyperscan reads it as RE2 does. The pattern is known to be valid RE2."""
    out: list[str] = []
    at, in_class, plain, caseless = 0, False, "[[:" not in source and "[:" not in source, False
    while at < len(source):
        piece = source[at : at + 2] if source[at] == "\\" else source[at]
        at += len(piece)
        if piece[0] == "\\":
            plain = plain and piece[1:] not in _FOREIGN
            out.append(_escape(piece, in_class))
            continue
        if piece == "[" and not in_class:
            in_class = True
            for opening in ("^", "]"):  # a bracket that opens a class is a plain one
                if source.startswith(opening, at):
                    piece += opening
                    at += 1
        elif piece == "]":
            in_class = False
        elif piece == "(" and not in_class and source[at : at + 1] == "?":
            flags = source[at + 1 :].partition(")")[0].partition(":")[0]
            caseless = caseless or "i" in flags
            plain = plain and "U" not in flags and "-" not in flags
        out.append(piece)
    beyond = not source.isascii() or "\\x{" in source or any(f"\\x{digit}" in source for digit in "89abcdefABCDEF")
    return "".join(out), plain and not (caseless and beyond)


def _escape(piece: str, in_class: bool) -> str:
    if piece == "\\s":
        return _SPACE if in_class else f"[{_SPACE}]"
    if piece == "\\S":
        return _NO_SPACE if in_class else f"[{_NO_SPACE}]"
    return {"\\A": "^", "\\z": "$"}.get(piece, piece)
