"""Reads diffs, as `git diff` and OpenAI's `apply_patch` write them, into edits, files written and files deleted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from inspector.actions.words import Action, Kind, Passage

PATCH_CHARS = 1 << 20
_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File: (.{1,1000})|\+\+\+ (?:b/)?([^\t\n]{1,1000})|--- (?:a/)?([^\t\n]{1,1000})")
_MOVED = re.compile(r"\*\*\* Move to: (.{1,1000})")


@dataclass
class _File:
    kind: Kind
    path: str
    start: int
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


def looks_like_a_patch(text: str) -> bool:
    """Whether it is one, by how it begins or what its lines begin with."""
    return "*** Begin Patch" in text or ("\n+++ " in text and "\n@@" in text)


def actions(passage: Passage) -> Iterator[Action]:
    """One action a file."""
    current: _File | None = None
    old, at = "", 0
    for line in passage.text[:PATCH_CHARS].splitlines(keepends=True):
        found = _FILE.match(line)
        if found and (opened := _opened(found, at, old)):
            if current:
                yield _action(current, passage, at)
            current = opened
        elif found and found[4]:
            old = found[4].strip()
        elif current and (moved := _MOVED.match(line)):
            yield Action(Kind.WRITE, passage.span(at, at + len(line)), path=moved[1].strip(), via="patch")
        elif current and line[:1] == "+":
            current.added.append(line[1:])
        elif current and line[:1] == "-":
            current.removed.append(line[1:])
        at += len(line)
    if current:
        yield _action(current, passage, at)


def _opened(found: re.Match[str], at: int, old: str) -> _File | None:
    if found[2]:
        return _File({"Add": Kind.WRITE, "Update": Kind.EDIT, "Delete": Kind.DELETE}[found[1]], found[2].strip(), at)
    if not found[3]:
        return None
    if found[3].strip() == "/dev/null":
        return _File(Kind.DELETE, old, at)
    return _File(Kind.WRITE if old == "/dev/null" else Kind.EDIT, found[3].strip(), at)


def _action(file: _File, passage: Passage, end: int) -> Action:
    return Action(file.kind, passage.span(file.start, end), path=file.path, text="".join(file.added), removed="".join(file.removed), via="patch")
