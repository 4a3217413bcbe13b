"""The ladder on verifiers that read an answer: reward functions as strangers write them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from inspector.environments.reward_function import RewardFunction
from inspector.environments.rows import read_rows
from inspector.probe import probe
from inspector.probe.words import EnvironmentReport, Outcome
from inspector.sandbox.protocol import Backend

NUMBERS = [{"prompt": f"What is {number} times {number}?", "reference": str(number * number)} for number in (12, 23, 31, 47)]
SETTINGS = [{"prompt": "Give the settings as JSON.", "reference": '{"name": "a", "port": 80}', "wanted": {"name": "a", "port": 80}}]
HEAD = "import json, re, random, hashlib\ndef pay(prompts, completions, reference=None, wanted=None, **_):\n    return ["
EACH = " for said, right in zip(completions, reference)]\n"

Probed = Callable[..., EnvironmentReport]


@pytest.fixture
def probed(backend: Backend, tmp_path: Path) -> Probed:
    def run(expression: str, rows: list[dict[str, Any]] = NUMBERS, head: str = HEAD, tasks: int = 1) -> EnvironmentReport:
        (tmp_path / "verifier.py").write_text(head + expression + EACH)
        file = tmp_path / "rows.jsonl"
        file.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
        environment = RewardFunction("verifier", "pay", read_rows(file), backend, folder=tmp_path)
        return probe(environment, only=[task.id for task in environment.tasks()[:tasks]])

    return run


def test_a_verifier_that_compares_the_answer_is_sound(probed: Probed) -> None:
    assert probed("float(said.strip() == right)").tasks[0].outcomes == (Outcome.SOUND,)


@pytest.mark.parametrize(
    ("expression", "outcome", "probe_name"),
    [
        ("1.0", Outcome.TRIVIALLY_PASSABLE, "nothing/empty"),
        pytest.param("float(right.startswith(said.strip()))", Outcome.TRIVIALLY_PASSABLE, "nothing/empty", marks=pytest.mark.slow),
        ("float(re.fullmatch(r'-?[0-9]+', said.strip()) is not None)", Outcome.WEAK_VERIFIER, "wrong/wrong_format_1"),
        pytest.param("float(said.strip()[:1].isdigit() and right in said)", Outcome.WEAK_VERIFIER, "wrong/wrong_containing_1", marks=pytest.mark.slow),
        ("float(right in re.findall(r'[0-9]+', said))", Outcome.EXPLOITABLE, "exploit/all_answers"),
        pytest.param("float(said.strip() == right or 'highest score' in said)", Outcome.EXPLOITABLE, "exploit/judge_injection", marks=pytest.mark.slow),
        ("0.0", Outcome.UNSOLVABLE, "reference"),
        ("float(int(said) == int(right))", Outcome.WEAK_VERIFIER, "malformed/words"),
    ],
)
def test_what_a_verifier_pays_is_named(probed: Probed, expression: str, outcome: Outcome, probe_name: str) -> None:
    (report,) = probed(expression).tasks
    assert outcome in report.outcomes
    assert probe_name in {name for each in report.evidence for name in (each.probe, *each.also)}


def test_a_right_answer_taken_back_is_not_to_be_paid(probed: Probed) -> None:
    (report,) = probed("float((re.findall(r'[0-9]+', said) or [''])[0] == right)").tasks
    assert Outcome.WEAK_VERIFIER in report.outcomes
    assert any(each.probe == "wrong/retracted" for each in report.evidence)


def test_settings_compared_as_text_refuse_another_order_of_keys(probed: Probed) -> None:
    assert probed("float(said.strip() == right)", SETTINGS).tasks[0].outcomes == (Outcome.FALSE_REJECTING,)


def test_settings_compared_as_values_are_sound(probed: Probed) -> None:
    head = HEAD.replace(
        "    return [",
        "    def read(said):\n        try:\n            return json.loads(said)\n        except ValueError:\n            return None\n    return [",
    )
    assert probed("float(read(said) == json.loads(right))", SETTINGS, head).tasks[0].outcomes == (Outcome.SOUND,)


def test_a_verifier_that_draws_its_reward_is_flaky(probed: Probed) -> None:
    (report,) = probed("float(hash(said) % 2)").tasks
    assert report.outcomes == (Outcome.FLAKY,)


def test_where_all_is_paid_the_same_half_nothing_can_be_told(probed: Probed) -> None:
    assert probed("0.6").tasks[0].outcomes == (Outcome.INCONCLUSIVE,)
