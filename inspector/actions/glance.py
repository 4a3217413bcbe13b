"""Tells of a shell line at a glance, without parsing it, what it cannot do: most lines only look around and need no tree.

Each answer errs on the side of parsing: it is wider than what `effects` reads, which a test runs both ways. Quotes and
backslashes are taken away first, so that no name is hidden in `r"m"`.
"""

from __future__ import annotations

import re

import re2

_DISCARDED = re.compile(r">>?[ \t]*/dev/(?:null|stdout|stderr)(?=[\s;&|)]|\Z)|>&")  # redirections to no file
_ALWAYS = (  # noqa: SIM905
    "rm unlink shred rmdir mv cp install ln rsync tee touch truncate dd eval str_replace_editor edit_anthropic str_replace_based_edit_tool create"
).split()
_CHANGING = re2.compile(
    "(?s)"
    + "|".join(
        (
            ">",
            rf"(?:^|\W)(?:{'|'.join(_ALWAYS)})(?:\W|$)",
            r"(?:^|\W)(?:g?sed|perl|ruby)\W.*-\S*i",
            r"(?:^|\W)find\W.*-(?:delete|exec|ok)",
            r"(?:^|\W)git\W.*(?:checkout|restore|<<)",
            r"(?:^|\W)(?:bash|sh|zsh|dash|ash|ksh|i?python\S*)\W.*(?:-\S*c(?:\W|$)|<<)",
            r"(?:^|\W)(?:apply_)?patch\W.*<<",
        )
    )
)
_PROGRAM = re2.compile(r"(?s)python.*(?:-\S*c(?:\W|$)|<<)")


def may_change(line: str) -> bool:
    """Whether it may write, edit or delete a file. Of several lines joined by line feeds: whether any of them may."""
    return _joins(line) or _CHANGING.search(_unquoted(_DISCARDED.sub(" ", line)).encode("utf-8", "replace")) is not None


def may_hold(line: str, word: str) -> bool:
    """Whether a command, a path or a text in it may have this word, which has no quotes; a program may put it together."""
    plain = _unquoted(line)
    return word in plain or _joins(line) or ("python" in plain and _PROGRAM.search(plain.encode("utf-8", "replace")) is not None)


def _unquoted(line: str) -> str:
    return line.replace("'", "").replace('"', "").replace("\\", "")


def _joins(line: str) -> bool:
    """Whether taking quotes away is not enough to see its words."""
    return "\\\n" in line or "$'" in line
