"""Runs the command as its console script does, in this process."""

import json
import sys
from typing import NamedTuple

import pytest

from inspector.cli import main


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lines(self):
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def run(monkeypatch, capsys):
    for name in ("INSPECTOR_URL", "INSPECTOR_KEY"):
        monkeypatch.delenv(name, raising=False)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["inspector", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        return Ran(code, *capsys.readouterr())

    return run


@pytest.fixture
def written(tmp_path):
    """Writes envelopes as a file of JSON Lines."""

    def write(*envelopes, name="a.jsonl"):
        path = tmp_path / name
        path.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in envelopes))
        return path

    return write
