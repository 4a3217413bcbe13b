"""Our own envelopes go through as they are."""

import json

import pytest

from inspector import formats

ENVELOPE = {
    "id": "n1",
    "environment": {"id": "acme/sums", "version": "1"},
    "task": {"id": "two"},
    "reward": None,
    "mystery": [1],
    "trajectory": {"schema_version": "ATIF-v1.8", "agent": {"name": "x", "version": "1"}, "steps": [{"step_id": 1, "source": "user", "message": "hi"}]},
}


def test_a_line_that_the_door_takes_is_not_touched(write):
    line = json.dumps(ENVELOPE, separators=(" , ", ": ")).encode() + b"  "
    (found,) = formats.read(write(line))
    assert found == formats.Imported(line.strip(), found.source)


def test_what_only_the_worker_can_judge_is_left_for_it(write):
    line = json.dumps(ENVELOPE).replace('"hi"', '"hi", "metrics": {"cost_usd": 1e999}')
    (found,) = formats.read(write(line))
    assert found.line == line.encode()


def test_a_document_over_many_lines_becomes_one_line(envelopes):
    assert envelopes(ENVELOPE) == [ENVELOPE]


@pytest.mark.parametrize("reward", ["NaN", "-Infinity", "1e999"])
def test_a_reward_that_json_cannot_carry_is_null_and_listed(envelopes, reward):
    (envelope,) = envelopes(json.dumps(ENVELOPE).replace('"reward": null', f'"reward": {reward}'))
    assert envelope["reward"] is None
    assert envelope["extra"]["import"]["lost"][0].startswith("$.reward: ")
    assert envelope["extra"]["native"] == {"mystery": [1]}


def test_a_line_without_its_environment_takes_the_callers(envelopes):
    row = {name: value for name, value in ENVELOPE.items() if name not in ("environment", "id")}
    (envelope,) = envelopes([row], environment="acme/sums", version="2")
    assert envelope["environment"] == {"id": "acme/sums", "version": "2"}
    assert envelope["task"] == {"id": "two"}


@pytest.mark.parametrize(
    ("change", "path"), [({"reward": "1"}, "$.reward"), ({"task": {}}, "$.task"), ({"id": "a\nb"}, "$.id"), ({"group": {"id": 3}}, "$.group")]
)
def test_a_line_that_the_door_would_reject_is_refused_with_the_same_path(write, change, path):
    (found,) = formats.read(write([{**ENVELOPE, **change}]))
    assert isinstance(found, formats.Refused)
    assert path in found.reason
