"""What runs used, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from inspector.testing import envelope
from tests.api.conftest import House

FAILED = {"exit_code": 1, "tests": {"collected": 3, "passed": 2, "failed": 1}}
WHERE = "/v1/runs/team/r/contamination"


def report(house: House, step: int, *used: str, attempt: str = "", before: int | None = None, **more: Any) -> Any:
    body = {
        "policy_before": step - 1 if before is None else before,
        "policy_after": step,
        "attempt": attempt,
        "used": [{"id": id_, "weight": 1.0, "reward": 1.0} for id_ in used],
    }
    return house.call("POST", f"/v1/runs/team/r/steps/{step}", {**body, **more})


@pytest.fixture
def trained(house: House) -> House:
    """Two good and two bad trajectories, of which the second and the third of four updates used one each; one was never posted."""
    house.post(*(envelope(id=f"g{n}", reward=1.0, run={"id": "team/r"}, group=None) for n in range(2)))
    house.post(*(envelope(id=f"b{n}", reward=1.0, verifier=FAILED, run={"id": "team/r"}, group={"id": "g", "index": n, "size": 2}) for n in range(2)))
    for step, used in enumerate((("g0", "never"), ("g0", "b0"), ("b0", "b1", "g1", "g1"), ("g1",)), 1):
        assert report(house, step, *used, checkpoint=f"/saved/{step}").status_code == 201
    house.audit()
    return house


def test_the_account_of_a_run_says_what_each_update_drew_from_bad_ones(trained: House) -> None:
    told = trained.get(WHERE).json()
    assert [(u["step"], u["bad_rows"], u["share"], u["inherited"]) for u in told["updates"]] == [(2, 1, 0.5, False), (3, 2, 0.5, True), (4, 0, 0.0, True)]
    summary = told["summary"]
    assert (summary["updates"], summary["rows"], summary["unknown"], summary["mass"]) == (4, 9, 1, 9.0)
    assert (summary["bad_rows"], summary["bad_trajectories"], summary["bad_groups"], summary["bad_mass"]) == (3, 2, 1, 3.0)
    assert (summary["direct_updates"], summary["affected_updates"], summary["first_step"], summary["last_clean"]) == (2, 3, 2, 1)
    assert summary["newest_is_clean"] is False
    [environment] = summary["environments"]
    assert (environment["rows"], environment["updates"], environment["first_step"], environment["mass"]) == (3, 2, 2, 3.0)


def test_going_back_makes_the_newest_version_clean(trained: House) -> None:
    assert report(trained, 2, "g1", attempt="again", before=1).status_code == 201
    told = trained.get(WHERE).json()
    assert told["summary"]["newest_is_clean"] is True
    assert [u["step"] for u in told["updates"]] == [2, 3, 4]
    assert [step["attempt"] for step in trained.get("/v1/runs/team/r/steps").json()["steps"]] == ["", "again", "", ""]


def test_pages_join_to_the_whole(trained: House) -> None:
    for path, listed in ((WHERE, "updates"), (WHERE + "/trajectories", "uses")):
        whole, after, joined = trained.get(path).json()[listed], None, []
        while True:
            page = trained.get(path, limit=1, **({"after": after} if after else {})).json()
            joined += page[listed]
            if (after := page["next"]) is None:
                break
        assert joined == whole
        assert len(whole) == 3


def test_each_use_is_listed_and_what_was_never_posted(trained: House) -> None:
    uses = trained.get(WHERE + "/trajectories").json()["uses"]
    assert [(u["step"], u["id"], u["group"], u["action"], u["cause"]) for u in uses] == [
        (2, "b0", "g", "exclude", "verifier_defect"),
        (3, "b0", "g", "exclude", "verifier_defect"),
        (3, "b1", "g", "exclude", "verifier_defect"),
    ]
    [unknown] = trained.get(WHERE + "/trajectories", unknown=True).json()["uses"]
    assert (unknown["step"], unknown["id"], unknown["key"]) == (1, "never", None)


def test_what_is_bad_is_for_the_caller_to_say(trained: House) -> None:
    [line] = [one for one in trained.get("/v1/trajectories").json()["trajectories"] if one["id"] == "b0"]
    [finding, *_] = trained.get(f"/v1/trajectories/{line['key']}").json()["findings"]
    here = {"environment": line["environment"]}
    for filters, rows in (
        ({"what": "proved"}, 3),
        ({"cause": "verifier_defect"}, 3),
        ({"cause": "infrastructure"}, 0),
        (here, 8),
        ({**here, "what": "standing"}, 3),
        ({**here, "version": line["version"], "task": line["task"]}, 8),
        ({"check": f"{finding['check']}@{finding['version']}"}, 3),
    ):
        assert trained.get(WHERE, **filters).json()["summary"]["bad_rows"] == rows, filters


def test_a_choice_that_cannot_be_is_refused(trained: House) -> None:
    for filters, status, path in (
        ({"task": "t"}, 422, "query.environment"),
        ({"what": "everything"}, 422, "query.what"),
        ({"check": "builtin/x"}, 422, "query.check"),
        ({"check": "builtin/x@1"}, 404, None),
        ({"environment": "no/such"}, 404, None),
        ({"cause": "weather"}, 422, "query.cause"),
    ):
        answer = trained.get(WHERE, **filters)
        assert (answer.status_code, answer.json()["error"].get("path")) == (status, path), filters


def test_another_project_sees_nothing_of_it(trained: House) -> None:
    assert trained.get(WHERE, holder="other-owner").status_code == 404
    trained.call(
        "POST", "/v1/runs/team/r/steps/1", {"policy_before": 0, "policy_after": 1, "used": [{"id": "b0", "weight": 1.0, "reward": 1.0}]}, "other-trainer"
    )
    summary = trained.get(WHERE, holder="other-owner").json()["summary"]
    assert (summary["bad_rows"], summary["unknown"]) == (0, 1)


def test_an_update_that_goes_backwards_is_refused(house: House) -> None:
    answer = house.call("POST", "/v1/runs/r/steps/3", {"policy_before": 3, "policy_after": 2})
    assert (answer.status_code, answer.json()["error"]["path"]) == (422, "$.policy_after")
