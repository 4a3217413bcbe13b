"""Opens what was handed over as environments: tells the faces apart by the name, the folder or the first row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from inspector.environments import benchmark_rows
from inspector.environments.benchmark_rows import BenchmarkRows
from inspector.environments.harbor.face import HarborEnvironment
from inspector.environments.harbor.folder import read_folders
from inspector.environments.protocol import Environment, Unreadable
from inspector.environments.rows import read_rows
from inspector.sandbox.protocol import Backend

FUNCTION = re.compile(r"([\w./-]+\.py|[A-Za-z_][\w.]*):([A-Za-z_]\w*)")


def open_environments(path_or_name: str, *, dataset: Path | None = None, backend: Backend) -> Sequence[Environment]:
    """The environments of a folder, a file of rows, or a name. Raises Unreadable; nothing foreign is run but inside boxes."""
    path = Path(path_or_name)
    if path.is_dir():
        return [HarborEnvironment(path.resolve().name, read_folders(path), backend)]
    if path.is_file():
        return [_of_rows(path, backend)]
    raise Unreadable(f"{path_or_name!r:.200} is no folder, no file and no name of an environment: {NAMES}")


NAMES = "a Harbor folder, a JSONL file, module:function, reasoning-gym:NAME, verifiers:ID, or http(s)://…/verify"


def _of_rows(path: Path, backend: Backend) -> Environment:
    rows = read_rows(path)
    first = rows[0].value
    if benchmark_rows.reads(first):
        return BenchmarkRows(path.name.split(".")[0], rows, backend)
    raise Unreadable(f"{rows[0].place}: has {', '.join(sorted(first))[:200]}: neither tests nor gold actions")
