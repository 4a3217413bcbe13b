"""What the tests of the process tree share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from inspector.embedded import Stack
from inspector.embedded.child import Child, Program
from inspector.embedded.processes import POLITE, Ladder


class Said(list[str]):
    """What a person at the terminal would have read."""

    def __str__(self) -> str:
        return "\n".join(self)


@pytest.fixture
def said() -> Said:
    return Said()


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder whose cluster is made, and stopped; to be copied, since making one takes a second of CPU."""
    folder = tmp_path_factory.mktemp("prepared") / "data"
    with Stack(folder, parts={"postgres"}):
        return folder


@pytest.fixture
def copied(prepared: Path, tmp_path: Path) -> Path:
    """A data folder of this test's own, with an empty cluster."""
    subprocess.run(["cp", "-a", str(prepared), str(tmp_path / "data")], check=True)
    return tmp_path / "data"


@pytest.fixture
def child(tmp_path: Path, said: Said) -> Iterator[Callable[..., Child]]:
    """Makes children that are stopped after the test."""
    made: list[Child] = []

    def make(code: str, ladder: Ladder = POLITE, **options: object) -> Child:
        program = Program(name="thing", command=[sys.executable, "-c", code], environment=dict(os.environ), ladder=ladder, **options)
        made.append(Child(program, tmp_path / "thing.log", say=said.append))
        return made[-1]

    yield make
    for each in made:
        each.stop(hurry=lambda: True)
