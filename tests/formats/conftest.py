"""Reading small files with every importer's promise checked: an admitted line without a defect, and valid ATIF-v1.8."""

import json
import os
from pathlib import Path

import atif
import pytest

from inspector import formats, gates
from inspector.settings import Limits


def checked(found):
    """The envelope of one imported line, as a dict, after all that holds for each."""
    assert isinstance(found, formats.Imported), found
    gates.admit(found.line, Limits())
    assert not gates.read(found.line).defects, gates.read(found.line).defects
    envelope = json.loads(found.line)
    atif.Trajectory.model_validate(envelope["trajectory"])
    assert b"\n" not in found.line
    if "import" in (envelope.get("extra") or {}):
        assert envelope["extra"]["import"]["lost"] == list(found.lost)
        assert len(envelope["extra"]["import"]["raw_sha256"]) == 64
    return envelope


@pytest.fixture
def envelopes(tmp_path):
    """Writes rows (or text, or bytes) to a file and gives the checked envelopes that are read from it."""

    def read(content, name="rollouts.jsonl", **asked):
        return [checked(found) for found in formats.read(written(tmp_path / name, content), **asked)]

    return read


@pytest.fixture
def write(tmp_path):
    return lambda content, name="rollouts.jsonl": written(tmp_path / name, content)


def written(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, list):
        content = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in content)
    if isinstance(content, dict):
        content = json.dumps(content, indent=2)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.fixture(scope="session")
def public_data():
    """The folder of real files that others published; not part of this repository."""
    folder = os.environ.get("INSPECTOR_PUBLIC_DATA")
    if not folder:
        pytest.skip("INSPECTOR_PUBLIC_DATA is not set: no folder with nemo_gym_rollouts and format_fixtures to read")
    return Path(folder)
