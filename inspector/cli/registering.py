"""`inspector environments register`: an environment version is packed, uploaded, and from then on probed by the service."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import IO, Annotated, NamedTuple

import typer

from inspector.cli.inputs import Json, environment_version
from inspector.cli.output import json_line, say, warn
from inspector.cli.service import Data, Key, Url, connected

FUNCTION = re.compile(r"(.+\.py):([A-Za-z_][\w.]*)")


class Face(StrEnum):
    """What a package is read as."""

    AUTO = "auto"
    HARBOR = "harbor"
    ROWS = "rows"
    FUNCTION = "function"
    GOLD_ACTIONS = "gold_actions"


class Sources(NamedTuple):
    """What goes into a package, and what of it is the environment."""

    paths: list[Path]
    entry: str
    dataset: str | None


def register(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A Harbor folder or a folder of them, a file of rows, or FILE.py:FUNCTION.")],
    name: Annotated[str, typer.Option("--name", metavar="TEAM/NAME", help="Of the environment.")],
    version: Annotated[str, typer.Option("--version", help="Of it; a package that was probed is never changed.")],
    dataset: Annotated[Path | None, typer.Option("--dataset", metavar="FILE", help="The rows of a reward function.")] = None,
    face: Annotated[Face, typer.Option("--face", help="What it is to be read as.")] = Face.AUTO,
    url: Url = "",
    key: Key = "",
    data: Data = None,
    json: Json = False,
) -> None:
    """Hand an environment version over to the service, which probes it when it is asked to."""
    from inspector.packing import pack

    environment, version = environment_version(f"{name}@{version}")
    sources = _sources(path, dataset)
    with connected(url, key, data, role="owner") as api, tempfile.TemporaryFile() as tar:
        packed = pack(sources.paths, tar)
        for left_out in packed.left_out:
            warn(f"left out: {left_out}")
        tar.seek(0)
        api.upload(f"/v1/artifacts/{packed.sha256}", _pieces(tar))
        wanted = {"artifact": packed.sha256, "face": face.value, "entry": sources.entry, "dataset": sources.dataset}
        done = api.register(environment, version, wanted)
    if json:
        json_line(done)
    else:
        say(f"registered {environment} {version}: {packed.length} bytes, sha256 {packed.sha256}")


def _sources(path: str, dataset: Path | None) -> Sources:
    if Path(path).exists():
        if dataset is not None:
            raise typer.BadParameter("only goes with FILE.py:FUNCTION", param_hint="--dataset")
        return Sources([Path(path)], Path(path).resolve().name, None)
    found = FUNCTION.fullmatch(path)
    if found is None or not Path(found[1]).is_file():
        raise typer.BadParameter(f"{path!r} is no folder, no file, and no function of one", param_hint="PATH")
    if dataset is None:
        raise typer.BadParameter("a reward function needs its rows: give --dataset", param_hint="PATH")
    return Sources([Path(found[1]), dataset], f"{Path(found[1]).resolve().name}:{found[2]}", dataset.resolve().name)


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    from inspector.packing import PIECE

    while piece := file.read(PIECE):
        yield piece
