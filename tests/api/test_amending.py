"""What comes later than the line: a reward, a verifier's report, files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from inspector.settings import Limits
from inspector.testing import envelope
from tests.api.conftest import House

FAILED = {"exit_code": 1, "tests": {"collected": 3, "passed": 2, "failed": 1}}


def alone(**fields: Any) -> dict[str, Any]:
    return envelope(**{"id": "a", "group": None, "run": None, "reward": None, "verifier": None, **fields})


def test_a_late_verifier_report_changes_the_decision(house: House) -> None:
    [receipt] = house.post(alone(reward=1.0))
    house.audit()
    assert house.call("PATCH", f"/v1/trajectories/{receipt['key']}", {"verifier": FAILED}, "acme-trainer").json()["added"] == ["verifier"]
    house.audit()
    [decision] = house.get("/v1/decisions").json()["decisions"]
    assert (decision["trajectory"], decision["action"], decision["cause"]) == ("a", "exclude", "verifier_defect")


def test_a_late_reward_of_zero_is_a_score(house: House) -> None:
    [receipt] = house.post(alone())
    house.call("PATCH", f"/v1/trajectories/{receipt['key']}", {"reward": 0.0}, "acme-trainer")
    [line] = house.get("/v1/trajectories").json()["trajectories"]
    assert line["reward"] == 0.0
    assert house.get(f"/v1/trajectories/{receipt['key']}").json()["envelope"]["reward"] == 0.0


def test_a_field_is_added_once(house: House) -> None:
    [receipt] = house.post(alone())
    path = f"/v1/trajectories/{receipt['key']}"
    assert house.call("PATCH", path, {"reward": 0.5}, "acme-trainer").json()["added"] == ["reward"]
    assert house.call("PATCH", path, {"reward": 0.5}, "acme-trainer").json()["added"] == []
    refused = house.call("PATCH", path, {"reward": 0.6}, "acme-trainer")
    assert (refused.status_code, refused.json()["error"]["path"]) == (409, "$.reward")


def test_what_came_with_the_line_stays(house: House) -> None:
    [receipt] = house.post(alone(reward=0.0))
    refused = house.call("PATCH", f"/v1/trajectories/{receipt['key']}", {"reward": 1.0}, "acme-trainer")
    assert (refused.status_code, refused.json()["error"]["path"]) == (409, "$.reward")


@pytest.mark.parametrize(("body", "path"), [({}, "$"), ({"reward": None}, "$.reward"), ({"id": "b"}, "$.id"), ({"reward": "high"}, "$.reward")])
def test_a_bad_amendment_names_the_field(house: House, body: dict[str, object], path: str) -> None:
    [receipt] = house.post(alone())
    refused = house.call("PATCH", f"/v1/trajectories/{receipt['key']}", body, "acme-trainer")
    assert (refused.status_code, refused.json()["error"]["path"]) == (422, path)


def upload(house: House, content: bytes, digest: str | None = None, holder: str = "acme-trainer") -> Any:
    digest = digest or hashlib.sha256(content).hexdigest()
    return house.client.put(f"/v1/artifacts/{digest}", content=content, headers=house.auth(holder))


def test_an_artifact_comes_back_byte_for_byte_to_its_project_alone(house: House) -> None:
    content = bytes(range(256)) * 9000
    digest = hashlib.sha256(content).hexdigest()
    assert [upload(house, content).status_code for _ in range(2)] == [201, 200]
    answer = house.get(f"/v1/artifacts/{digest}")
    assert (answer.content, answer.headers["content-type"]) == (content, "application/octet-stream")
    assert house.get(f"/v1/artifacts/{digest}", "other-owner").status_code == 404


def test_bytes_of_another_digest_are_refused_and_leave_nothing(house: House) -> None:
    wrong = hashlib.sha256(b"something else").hexdigest()
    assert upload(house, b"this", wrong).status_code == 422
    assert house.get(f"/v1/artifacts/{wrong}").status_code == 404
    assert [path for path in (house.settings.store_path / "artifacts").rglob("*") if path.is_file()] == []


def test_a_file_over_the_limit_is_refused(open_house: Callable[..., House]) -> None:
    house = open_house(limits=Limits(artifact_bytes=1000))
    assert upload(house, b"x" * 1001).status_code == 413


def test_what_is_added_may_be_no_larger_than_an_envelope(open_house: Callable[..., House]) -> None:
    house = open_house(limits=Limits(envelope_bytes=10_000))
    [receipt] = house.post(envelope(id="a", reward=None, rewards=None, verifier=None, artifacts=None))
    path = f"/v1/trajectories/{receipt['key']}"
    assert house.call("PATCH", path, {"verifier": {"stdout": "x" * 10_000}}).status_code == 413
    assert house.call("PATCH", path, {"verifier": {"stdout": "x" * 6_000}}).status_code == 200
    refused = house.call("PATCH", path, {"rewards": {"r" * 6_000: {"score": 1.0}}})
    assert (refused.status_code, refused.json()["error"]["path"]) == (413, "$.verifier")
    assert "the limit is 10000" in refused.json()["error"]["reason"]
    assert house.call("PATCH", path, {"reward": 0.5}).status_code == 200
