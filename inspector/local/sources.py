"""Opens what may hold trajectories, and lists what of it cannot be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from inspector import formats
from inspector.errors import UnreadableInput
from inspector.formats import Imported, Refused
from inspector.formats._harbor import trials
from inspector.showable import showable

DEPTH = 8  # levels of folders that are looked into


class Sources(NamedTuple):
    """Files and folders, and how to read them."""

    paths: tuple[Path, ...]
    format: str = "auto"
    environment: str | None = None  # of records that do not name theirs
    version: str | None = None

    def read(self) -> Iterator[Imported | Refused]:
        """Every trajectory in them, in order; what cannot be read costs only itself."""
        for path in self.paths:
            yield from self._opened(path, DEPTH)

    def _opened(self, path: Path, depth: int) -> Iterator[Imported | Refused]:
        try:
            if self._to_be_walked(path) and depth:
                for child in sorted(path.iterdir()):
                    if not child.name.startswith("."):
                        yield from self._opened(child, depth - 1)
            else:
                yield from formats.read(path, self.format, environment=self.environment, version=self.version)
        except UnreadableInput as error:
            yield Refused(str(path), str(error).removeprefix(f"{path}: "))
        except OSError as error:
            yield Refused(str(path), error.strerror or str(error))

    def _to_be_walked(self, path: Path) -> bool:
        """A folder, but for one that an importer reads as a whole: a Harbor trial, or a job of them."""
        return path.is_dir() and not any(True for _ in trials(path, depth=1))


def told(refused: Sequence[Refused], shown: int = 100) -> Iterator[str]:
    """One line for each part that could not be read; a cut says how many more there are."""
    for one in refused[:shown]:
        yield f"{showable(one.source)}: {showable(one.reason, limit=500)}"
    if len(refused) > shown:
        yield f"and {len(refused) - shown} more"
