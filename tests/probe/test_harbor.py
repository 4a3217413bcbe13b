"""The ladder on the Harbor folders of this repository: every one gets exactly the outcomes that its author wrote down."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from inspector.environments.harbor.face import HarborEnvironment
from inspector.environments.harbor.folder import read_folder
from inspector.probe import probe
from inspector.probe.words import Outcome, TaskReport
from inspector.sandbox.protocol import Backend

FOLDERS = Path(__file__).parent.parent / "fixtures" / "harbor"
EXPECTED = json.loads((FOLDERS / "expected.json").read_text())
QUICK = ("gross-prices", "meter-outliers", "release-digest", "survey-tally")  # whose verifiers are done in a blink


def probed(name: str, backend: Backend) -> TaskReport:
    (report,) = probe(HarborEnvironment(name, [read_folder(FOLDERS / name)], backend)).tasks
    return report


def wanted(name: str) -> Sequence[Outcome]:
    return sorted(Outcome(each) for each in EXPECTED[name]["outcomes"])


@pytest.mark.parametrize("name", QUICK)
def test_a_folder_whose_verifier_is_quick_gets_its_outcomes(name: str, backend: Backend) -> None:
    assert sorted(probed(name, backend).outcomes) == wanted(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(EXPECTED) - set(QUICK)))
def test_a_folder_gets_its_outcomes(name: str, backend: Backend) -> None:
    report = probed(name, backend)
    assert sorted(report.outcomes) == wanted(name), report.evidence
