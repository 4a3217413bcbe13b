"""Reads what harnesses and trainers already write and gives envelopes that are ready to post or to audit.

One importer a file: a module of this package without a leading underscore, with `NAME`, `VERSION`, `looks_like(peek)`
and `convert(path, asked)`. It is found by walking the package; adding a format is adding its file.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from inspector.errors import UnreadableInput
from inspector.formats._draft import Asked, Draft, Imported, seal
from inspector.formats._files import Peek, Refused, peek

__all__ = ["FORMATS", "Imported", "Importer", "Refused", "detect", "read"]

AUTO = "auto"


class Importer(Protocol):
    """What the module of a format holds."""

    NAME: str
    VERSION: int  # changes whenever the same input gives another envelope

    def looks_like(self, peek: Peek) -> float:
        """How sure it is that the path is of its format, from 0 (not) to 1."""
        ...

    def convert(self, path: Path, asked: Asked) -> Iterator[Draft | Imported | Refused]:
        """Every trajectory of the path. Raises UnreadableInput where nothing more can be read."""
        ...


def _found() -> dict[str, Importer]:
    modules = [cast(Importer, import_module(f"{__name__}.{module.name}")) for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    return {module.NAME: module for module in modules}


FORMATS: dict[str, Importer] = _found()


def detect(path: Path) -> str:
    """The name of the format, by content and never by the file's name alone. Raises UnreadableInput when no importer knows it."""
    opening = peek(path)
    sure, name = max((importer.looks_like(opening), name) for name, importer in FORMATS.items())
    if sure <= 0:
        raise UnreadableInput(f"{path}: no importer knows this {opening.kind}{_keys(opening)}; formats: {', '.join(sorted(FORMATS))}")
    return name


def _keys(opening: Peek) -> str:
    return f" of objects with the keys {', '.join(sorted(opening.first)[:12])}" if opening.first else ""


def read(path: Path, format: str = AUTO, *, environment: str | None = None, version: str | None = None) -> Iterator[Imported | Refused]:
    """Every trajectory of a file or folder, and every part that could not be read among those that could.

    `environment` and `version` name the environment of records that do not name it themselves. Raises UnreadableInput
    naming file, line and why when the path as a whole, or the rest of it, cannot be read.
    """
    name = detect(path) if format == AUTO else format
    if name not in FORMATS:
        raise UnreadableInput(f"{path}: no format {name!r}; formats: {', '.join(sorted(FORMATS))}")
    importer = FORMATS[name]
    for found in importer.convert(path, Asked(environment, version)):
        yield seal(found, name, importer.VERSION, Asked(environment, version)) if isinstance(found, Draft) else found
