"""What the API tells of a state: why it holds, since when, what ends it; and what owners are told."""

from __future__ import annotations

from inspector import settling
from inspector.testing import envelope
from tests.api.conftest import House
from tests.audit.conftest import FAILED

VERSION = "/v1/environments/acme/terminal/versions/1"
HERE = {"id": "acme/terminal", "version": "1"}


def test_a_quarantine_says_why_and_how_it_ends_and_its_owner_is_told(house: House) -> None:
    posted = [envelope(id=f"bad{at}", reward=1.0, task={"id": f"t{at}"}, environment=HERE, group=None, run=None, verifier=FAILED) for at in range(8)]
    assert house.call("PUT", VERSION, {"reward": {"min": 0, "max": 1}}).status_code == 200
    house.post(*posted)
    house.audit()
    assert settling.settle(house.engine)
    said = house.get(VERSION).json()
    assert (said["state"], said["audit_rate"], said["standing"]["why"]) == ("quarantined", 1.0, "defects")
    assert said["changes"][0]["note"].startswith("8 defects in 8 audited episodes")
    assert len(said["standing"]["release"]) == 5
    assert [(one["before"], one["after"], one["author"]) for one in said["changes"]] == [("active", "quarantined", "policy:standing")]
    [told] = house.get("/v1/notices").json()["notices"]
    assert (told["notice"]["kind"], told["notice"]["where"]) == ("quarantined", VERSION)
    assert house.get("/v1/decisions/snapshot").json()["states"][0]["audit_rate"] == 1.0
    assert house.call("PUT", VERSION + "/state", {"state": "active", "note": "looked at it", "hold": True}).status_code == 200
    assert house.get(VERSION).json()["standing"]["held"] is True
