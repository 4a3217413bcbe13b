"""Boxes and data for the tests of environments; the examples of the lint are no tests of the product."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from inspector.environments.opening import open_environments

collect_ignore = ["lint"]
TASK = {
    "task.toml": 'schema_version = "1.4"\n\n[agent]\ntimeout_sec = 60.0\n\n[verifier]\ntimeout_sec = 60.0\n',
    "instruction.md": "Write the sum of /app/numbers.txt to /app/sum.txt.\n",
    "environment/Dockerfile": f"FROM python:3.{sys.version_info.minor}-slim\nWORKDIR /app\nCOPY numbers.txt .\n",
    "environment/numbers.txt": "40\n2\n",
    "solution/solve.sh": "#!/bin/bash\nawk '{ sum += $1 } END { print sum }' numbers.txt > /app/sum.txt\n",
    "tests/test.sh": '#!/bin/bash\nif [ "$(cat /app/sum.txt)" = 42 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n',
}


@pytest.fixture(scope="session")
def backend(boxes):
    """Boxes of this machine."""
    return boxes


@pytest.fixture
def rows(tmp_path):
    """Writes rows, and says where."""

    def write(*values, name="rows.jsonl"):
        path = tmp_path / name
        path.write_text("".join(f"{json.dumps(value)}\n" for value in values))
        return path

    return write


@pytest.fixture
def folder(tmp_path):
    """Writes a task folder: the plain one, with other files where they are given; None leaves one out."""

    def write(files=None, name="sum"):
        files = {**TASK, **(files or {})}
        root = tmp_path / name
        for path, text in files.items():
            if text is not None:
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_bytes(text if isinstance(text, bytes) else text.encode())
        return root

    return write


@pytest.fixture
def opened(backend):
    """Opens the one environment of a path or a name."""

    def open_one(path, dataset=None):
        (environment,) = open_environments(str(path), dataset=dataset, backend=backend)
        return environment

    return open_one


@pytest.fixture(scope="session")
def public_data():
    """A folder of real data with known answers, which is no part of this repository."""
    folder = os.environ.get("INSPECTOR_PUBLIC_DATA")
    if folder is None:
        pytest.skip("INSPECTOR_PUBLIC_DATA is not set: no real data with known answers to read")
    return Path(folder)
