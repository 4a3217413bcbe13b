"""Environments of the tests: small rows, graded in real boxes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from inspector.environments.benchmark_rows import LIMITS, BenchmarkRows
from inspector.environments.rows import read_rows
from inspector.sandbox.opening import open_backend
from inspector.sandbox.protocol import Backend, Broken, Limits, Refused


@pytest.fixture(scope="session")
def backend() -> Backend:
    """Boxes of this machine."""
    backend = open_backend()
    try:
        with backend.create() as box:
            box.run(["/bin/true"])
    except (Refused, Broken) as error:
        pytest.skip(f"no sandbox on this machine: {error}")
    return backend


@pytest.fixture
def rows(backend: Backend, tmp_path: Path) -> Callable[..., BenchmarkRows]:
    """Benchmark rows as an environment."""

    def made(*values: dict[str, Any], cpu_s: float = 5.0, limits: Limits = LIMITS) -> BenchmarkRows:
        file = tmp_path / "rows.jsonl"
        file.write_bytes(b"".join(msgspec.json.encode(value) + b"\n" for value in values))
        return BenchmarkRows("rows", read_rows(file), backend, cpu_s=cpu_s, limits=limits)

    return made
