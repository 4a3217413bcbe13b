"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from inspector.local.sources import Sources

AUTO = "auto"

Files = Annotated[list[Path], typer.Argument(metavar="FILES…", help="Files or folders of trajectories.")]
Format = Annotated[str, typer.Option("--format", help="auto, or the name of a format; a wrong one is answered with all of them.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON value a line.")]
As = Annotated[str | None, typer.Option("--as", metavar="TEAM/NAME@VERSION", help="The environment of records that do not name theirs.")]


def named(place: str | None) -> tuple[str, str] | None:
    """(team/name, version) of an environment version as it is written on the command line."""
    if place is None:
        return None
    name, at, version = place.rpartition("@")
    if not at or not version or name.count("/") != 1 or "" in name.split("/"):
        raise typer.BadParameter(f"{place!r} is not of the form team/name@version")
    return name, version


def environment_version(place: str) -> tuple[str, str]:
    """As `named`, of an argument that must be there."""
    found = named(place)
    assert found is not None
    return found


def sources_of(files: Sequence[Path], format: str, environment: tuple[str, str] | None = None) -> Sources:
    """The files to read, in a known format."""
    from inspector.formats import FORMATS
    from inspector.local.sources import Sources

    if format != AUTO and format not in FORMATS:
        raise typer.BadParameter(f"{format!r} is no format; these are: auto, {', '.join(sorted(FORMATS))}", param_hint="--format")
    return Sources(tuple(files), format, *(environment or (None, None)))
