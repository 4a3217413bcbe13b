"""Opens what was handed over as environments: tells the faces apart by the name, the folder or the first row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from inspector.environments import benchmark_rows, gold_actions
from inspector.environments.benchmark_rows import BenchmarkRows
from inspector.environments.gold_actions import GoldActions
from inspector.environments.harbor.face import HarborEnvironment
from inspector.environments.harbor.folder import read_folders
from inspector.environments.http_verifier import HttpVerifier
from inspector.environments.protocol import Environment, Unreadable
from inspector.environments.reasoning_gym import open_reasoning_gym
from inspector.environments.reward_function import RewardFunction
from inspector.environments.rows import Row, read_rows
from inspector.environments.verifiers_env import VerifiersEnvironment
from inspector.sandbox.protocol import Backend

FUNCTION = re.compile(r"([\w./-]+\.py|[A-Za-z_][\w.]*):([A-Za-z_][\w.]*)")
NAMES = "a Harbor folder, a JSONL file, module:function, reasoning-gym:NAME, verifiers:ID, or http(s)://…/verify"


def open_environments(path_or_name: str, *, dataset: Path | None = None, backend: Backend) -> Sequence[Environment]:
    """The environments of a folder, a file of rows, or a name. Raises Unreadable; nothing foreign is run but inside boxes."""
    kind, _, name = path_or_name.partition(":")
    if kind == "reasoning-gym":
        return open_reasoning_gym(name, backend)
    if kind == "verifiers":
        return [VerifiersEnvironment(name, backend)]
    if kind in ("http", "https"):
        return [HttpVerifier(path_or_name, _rows(path_or_name, dataset))]
    path = Path(path_or_name)
    if path.is_dir():
        return [HarborEnvironment(path.resolve().name, read_folders(path), backend)]
    if path.is_file():
        return [_of_rows(path, backend)]
    if found := FUNCTION.fullmatch(path_or_name):
        return [RewardFunction(found[1], found[2], _rows(path_or_name, dataset), backend)]
    raise Unreadable(f"{path_or_name!r:.200} is no folder, no file and no name of an environment: {NAMES}")


def _rows(name: str, dataset: Path | None) -> Sequence[Row]:
    if dataset is None:
        raise Unreadable(f"{name!r:.200} needs a data set of rows")
    return read_rows(dataset)


def _of_rows(path: Path, backend: Backend) -> Environment:
    rows = read_rows(path)
    first, name = rows[0].value, path.name.split(".")[0]
    if gold_actions.reads(first):
        return GoldActions(name, rows)
    if benchmark_rows.reads(first):
        return BenchmarkRows(name, rows, backend)
    raise Unreadable(f"{rows[0].place}: has {', '.join(sorted(first))[:200]}: neither tests nor gold actions")
