"""`inspector environments register`: an environment version is packed, uploaded, and from then on probed by the service."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, NamedTuple

import typer

from inspector.cli.inputs import Json, environment_version
from inspector.cli.output import json_line, say, warn
from inspector.cli.service import Data, Key, Url, connected

if TYPE_CHECKING:
    from inspector.client.http import Api

FUNCTION = re.compile(r"(.+\.py):([A-Za-z_][\w.]*)")


class Face(StrEnum):
    """What a package is read as."""

    AUTO = "auto"
    HARBOR = "harbor"
    ROWS = "rows"
    FUNCTION = "function"
    GOLD_ACTIONS = "gold_actions"


NAMED = {"reasoning-gym": "reasoning_gym", "verifiers": "verifiers", "http": "http_verifier", "https": "http_verifier"}  # faces, by scheme
SCHEMES = re.compile(r"(reasoning-gym|verifiers|https?):.+")


class Sources(NamedTuple):
    """What goes into a package, and what of it is the environment."""

    paths: list[Path]  # none where a worker has it installed
    entry: str
    dataset: str | None
    face: str | None = None  # where the path says it


def register(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="A Harbor folder or a folder of them, a file of rows, FILE.py:FUNCTION, reasoning-gym:NAME, verifiers:ID, or http(s)://…/verify.",
        ),
    ],
    name: Annotated[str, typer.Option("--name", metavar="TEAM/NAME", help="Of the environment.")],
    version: Annotated[str, typer.Option("--version", help="Of it; a package that was probed is never changed.")],
    dataset: Annotated[Path | None, typer.Option("--dataset", metavar="FILE", help="The rows of a reward function, or of a verifier that is served.")] = None,
    face: Annotated[Face, typer.Option("--face", help="What it is to be read as.")] = Face.AUTO,
    url: Url = "",
    key: Key = "",
    data: Data = None,
    json: Json = False,
) -> None:
    """Hand an environment version over to the service, which probes it when it is asked to."""
    environment, version = environment_version(f"{name}@{version}")
    sources = _sources(path, dataset)
    with connected(url, key, data, role="owner") as api:
        artifact, length = _uploaded(api, sources.paths) if sources.paths else (None, 0)
        wanted = {"artifact": artifact, "face": sources.face or face.value, "entry": sources.entry, "dataset": sources.dataset}
        done = api.register(environment, version, wanted)
    if json:
        json_line(done)
    else:
        say(f"registered {environment} {version}: " + (f"{length} bytes, sha256 {artifact}" if artifact else f"{sources.face} {sources.entry}"))


def _uploaded(api: Api, paths: list[Path]) -> tuple[str, int]:
    """The sha256 and the length of what was packed and sent."""
    from inspector.packing import pack

    with tempfile.TemporaryFile() as tar:
        packed = pack(paths, tar)
        for left_out in packed.left_out:
            warn(f"left out: {left_out}")
        tar.seek(0)
        api.upload(f"/v1/artifacts/{packed.sha256}", _pieces(tar))
    return packed.sha256, packed.length


def _sources(path: str, dataset: Path | None) -> Sources:
    if (named := SCHEMES.fullmatch(path)) is not None:
        return _named(named[1], path, dataset)
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


def _named(scheme: str, path: str, dataset: Path | None) -> Sources:
    """What lies elsewhere: a data set or an environment that workers have installed, or a verifier that is served."""
    entry = path if scheme.startswith("http") else path.partition(":")[2]
    if scheme.startswith("http") and dataset is None:
        raise typer.BadParameter("a verifier that is served needs its rows: give --dataset", param_hint="PATH")
    if scheme == "reasoning-gym" and dataset is not None:
        raise typer.BadParameter("a data set of reasoning-gym brings its own rows", param_hint="--dataset")
    return Sources([dataset] if dataset else [], entry, dataset.resolve().name if dataset else None, NAMED[scheme])


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    from inspector.packing import PIECE

    while piece := file.read(PIECE):
        yield piece
