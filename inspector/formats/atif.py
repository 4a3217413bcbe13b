"""ATIF documents of versions 1.0 to 1.8, alone or in the folder of a Harbor trial with its verifier's output."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from inspector.errors import UnreadableInput
from inspector.formats import _harbor
from inspector.formats._atif import is_atif
from inspector.formats._draft import Asked, Draft
from inspector.formats._files import Kind, Peek, Refused, Row, rows

NAME = "atif"
VERSION = 1


def looks_like(peek: Peek) -> float:
    """A document with ATIF steps, or a folder that Harbor wrote."""
    if peek.kind is Kind.FOLDER:
        return 1.0 if any(True for _ in _harbor.trials(peek.path)) else 0.0
    if peek.kind is not Kind.ROWS:
        return 0.0
    return 0.9 if is_atif(peek.first) else 0.8 if _harbor.is_trial_outcome(peek.first) else 0.0


def convert(path: Path, asked: Asked) -> Iterator[Draft | Refused]:
    """One trajectory a document, or one a trial folder."""
    if path.is_dir():
        yield from _folders(path)
        return
    for row in rows(path):
        if isinstance(row, Refused):
            yield row
        elif _harbor.is_trial_outcome(row.value):
            yield _harbor.trial(path.parent)
        else:
            yield _document(row)


def _folders(path: Path) -> Iterator[Draft | Refused]:
    found = False
    for folder in _harbor.trials(path):
        found = True
        yield _harbor.trial(folder)
    if not found:
        raise UnreadableInput(f"{path}: holds no Harbor trial (a folder with result.json or agent/trajectory.json)")


def _document(row: Row) -> Draft | Refused:
    if not isinstance(row.value, dict) or not isinstance(row.value.get("steps"), list):
        return Refused(row.source, "is not an ATIF document: it has no list `steps`")
    draft, extra = Draft.of(row), row.value.get("extra")
    said = extra if isinstance(extra, dict) else {}
    draft.document, draft.id = row.value, row.value.get("trajectory_id")
    draft.environment, draft.version = said.get("environment"), said.get("environment_version")
    draft.task = said.get("task_id") or said.get("task_name")
    draft.score(said.get("reward"), "$.extra.reward")
    return draft
