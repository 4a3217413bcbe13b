"""What people see of the calibration, and what chance gives them to look at."""

from __future__ import annotations

import pytest

from inspector import calibrating, policy
from inspector.audit.beliefs import Beliefs
from inspector.store import calibrations, labels, projects
from inspector.store.labels import Pick
from inspector.store.session import transaction
from inspector.testing import envelope
from tests.api.conftest import paid_despite_failures


def project_of(house, name="acme"):
    with transaction(house.engine) as session:
        return projects.by_name(session, name)[0]


def test_before_labels_the_priors_hold_for_every_installed_check(house):
    told = house.get("/v1/calibration").json()
    assert (told["policy"], told["version"], told["stage"], told["measured"]) == ("default@3", None, "raw", None)
    assert told["thresholds"] == {"quarantine": 0.8, "flag": 0.3, "proof": 0.95}
    assert told["costs"] == {"miss": 7, "false_quarantine": 28, "false_flag": 3}
    assert {one["check"] for one in told["checks"]} == set(house.app.state.service.catalog.checks)
    evidence = next(one for one in told["checks"] if one["tier"] == "evidence" and one["cause"] == "verifier_defect")
    assert evidence["precision"]["mean"] == pytest.approx(0.95)
    assert (evidence["labels"], evidence["recall"]["mean"], evidence["proves"]) == (0, 0.9, False)


def test_what_people_judged_is_told_with_its_figures(house):
    receipts = house.post(*[paid_despite_failures(str(at)) for at in range(12)])
    house.audit()
    for at, receipt in enumerate(receipts):
        said = {"judgement": "accept"} if at < 3 else {"judgement": "quarantine", "cause": "verifier_defect"}
        assert house.call("POST", f"/v1/trajectories/{receipt['key']}/review", said, "acme-reviewer").status_code == 200
    [done] = calibrating.calibrate_due(house.engine, policy.load())
    told = house.get("/v1/calibration", "acme-reviewer").json()
    assert (told["version"], told["labels"], told["positives"], told["why"]) == (1, 12, 9, done.why)
    assert told["measured"]["ece"]["low"] <= told["measured"]["ece"]["value"] <= 1
    judged = [one for one in told["checks"] if one["labels"]]
    assert judged
    assert all((one["labels"], one["right"] + one["wrong"]) == (12, pytest.approx(12)) for one in judged)
    with transaction(house.engine) as session:
        assert Beliefs(policy.load()).of(session, project_of(house)).name == f"default@3+{told['digest'][:8]}"
        assert calibrations.latest(session, project_of(house)).why == done.why


def test_a_trainer_learns_nothing_of_it(house):
    assert [house.get(path, "acme-trainer").status_code for path in ("/v1/calibration", "/v1/triage/spot-checks")] == [403, 403]


def test_a_spot_check_is_listed_without_what_the_checks_say_until_a_person_spoke(house):
    receipts = house.post(envelope(id="b"), paid_despite_failures("a"), envelope(id="c"))
    house.audit()
    project = project_of(house)
    with transaction(house.engine) as session:
        labels.pick(session, [Pick(receipt["key"], project, place, 0.5) for receipt, place in zip(receipts[:2], (0.3, 0.2), strict=True)])
    listed = house.get("/v1/triage/spot-checks").json()["spot_checks"]
    assert [one["id"] for one in listed] == ["a", "b"]
    assert not {"verdict", "probability", "action", "findings"} & listed[0].keys()
    assert [one["id"] for one in house.get("/v1/triage/spot-checks", limit=1).json()["spot_checks"]] == ["a"]
    house.call("POST", f"/v1/trajectories/{listed[0]['key']}/review", {"judgement": "accept"})
    assert [one["id"] for one in house.get("/v1/triage/spot-checks").json()["spot_checks"]] == ["b"]
    assert house.get("/v1/triage/spot-checks", "other-owner").json()["spot_checks"] == []
