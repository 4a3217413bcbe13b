"""Makes foreign text safe to print, log, or put into CSV or HTML text, by turning what cannot be seen into what can."""

from __future__ import annotations

import re
import shlex
import unicodedata

_SPACES = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"  # take room, so they hide nothing
# Printable to Python, drawn as nothing: fillers, joiners, and the variation selectors that are known to carry hidden bytes.
_HIDDEN = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0d\uffa0\U000e0100-\U000e01ef"
_INVISIBLE = re.compile(f"[{_HIDDEN}]|(?<=[\ufe0e\ufe0f])[\ufe0e\ufe0f]")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "␛"}
_HARMLESS = str.maketrans("", "", _SPACES)
_HARMLESS_LINES = str.maketrans("", "", _SPACES + "\n\t")
_FORMULA = re.compile(r"[\s'\"]*[=+\-@\t\r\n＝＋－＠]")


def showable(text: str, *, limit: int | None = None, lines: bool = False) -> str:
    """`text` with controls, escape sequences, bidi and zero-width characters and whatever else has no visible form written out, as `\\u{202e}`.

    `lines` keeps line feeds and tabs. `limit` is how many characters of `text` are shown at most; a cut says how many
    were left out. All else is unchanged, so calling it twice changes nothing; HTML still needs its own escaping of `<` and `&`.
    """
    left_out = 0 if limit is None else max(len(text) - limit, 0)
    head = text[: len(text) - left_out]
    shown = head if _harmless(head, lines) else _written_out(head, lines)
    return f"{shown}… [{left_out} characters left out]" if left_out else shown


def csv_cell(text: str) -> str:
    """`text` as one cell that no spreadsheet runs as a formula: a leading `= + - @` gets an apostrophe. Numbers are not text: write them as they are."""
    shown = showable(text)
    return f"'{shown}" if _FORMULA.match(shown) and not shown.startswith("'") else shown


def shell_word(text: str) -> str:
    """`text` as one word of a command for bash or zsh, which holds nothing that a terminal obeys, and is the same text again when pasted."""
    if showable(text) == text:
        return shlex.quote(text)
    return "$'" + "".join(chr(byte) if _plain(byte) else f"\\x{byte:02x}" for byte in text.encode(errors="surrogateescape")) + "'"


def _plain(byte: int) -> bool:
    return 0x20 <= byte < 0x7F and byte not in b"'\\"


def _harmless(text: str, lines: bool) -> bool:
    if not text.isprintable() and not text.translate(_HARMLESS_LINES if lines else _HARMLESS).isprintable():
        return False
    return text.isascii() or not _INVISIBLE.search(text)


def _written_out(text: str, lines: bool) -> str:
    visible = _INVISIBLE.sub(lambda found: _escape(found[0]), text)
    return "".join(char if char.isprintable() or (lines and char in "\n\t") or _is_space(char) else _escape(char) for char in visible)


def _is_space(char: str) -> bool:
    return unicodedata.category(char) == "Zs"


def _escape(char: str) -> str:
    return _NAMED.get(char) or f"\\u{{{ord(char):x}}}"
