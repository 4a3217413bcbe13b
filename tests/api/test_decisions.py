"""The feed of decisions as a trainer reads it."""

from __future__ import annotations

import threading
import time
from uuid import uuid4

from inspector.testing import envelope
from tests.api.conftest import paid_despite_failures


def later(act, seconds=0.3):
    timer = threading.Timer(seconds, act)
    timer.start()
    return timer


def test_the_feed_goes_on_from_a_cursor(house):
    house.post(paid_despite_failures("a"), envelope(id="kept"), paid_despite_failures("b"))
    house.audit()
    first = house.get("/v1/decisions", limit=1).json()
    assert (first["decisions"][0]["seq"], first["seq"], first["more"]) == (1, 2, True)
    rest = house.get("/v1/decisions", after=1, epoch=first["epoch"]).json()
    assert ([d["seq"] for d in rest["decisions"]], rest["more"]) == ([2], False)
    assert {d["trajectory"] for d in first["decisions"] + rest["decisions"]} == {"a", "b"}
    assert not {"verdict", "probability"} & first["decisions"][0].keys()


def test_nothing_new_is_304(house):
    house.post(paid_despite_failures("a"))
    house.audit()
    answer = house.get("/v1/decisions")
    again = house.client.get("/v1/decisions", headers={**house.auth(), "If-None-Match": answer.headers["etag"]}, params={"after": 1})
    assert (answer.headers["etag"], again.status_code) == (f'"{answer.json()["epoch"]}-1"', 304)


def test_a_long_poll_is_answered_by_the_next_decision(house):
    house.post(paid_despite_failures("a"))
    timer = later(house.audit)
    began = time.monotonic()
    page = house.get("/v1/decisions", wait=25).json()
    timer.join()
    assert [d["trajectory"] for d in page["decisions"]] == ["a"]
    assert time.monotonic() - began < 20


def test_a_long_poll_ends_without_news(house):
    page = house.get("/v1/decisions", wait=0.1).json()
    assert (page["seq"], page["decisions"], page["more"]) == (0, [], False)


def test_a_persons_judgement_wakes_a_long_poll(house):
    [receipt] = house.post(paid_despite_failures("a"))
    house.audit()
    timer = later(lambda: house.call("POST", f"/v1/trajectories/{receipt['key']}/review", {"judgement": "accept", "note": "fine"}, "acme-reviewer"))
    page = house.get("/v1/decisions", after=1, wait=25).json()
    timer.join()
    assert [(d["action"], d["author"], d["supersedes"]) for d in page["decisions"]] == [("keep", "person:reviewer of acme", 1)]


def test_a_foreign_epoch_is_gone_and_says_where_to_start(house):
    for parameters in ({"epoch": str(uuid4())}, {"epoch": "none"}, {"after": 7}):
        answer = house.get("/v1/decisions", **parameters)
        assert (answer.status_code, answer.json()["snapshot"]) == (410, "/v1/decisions/snapshot")


def test_the_snapshot_is_what_stands(house):
    [a, _, _] = house.post(paid_despite_failures("a"), paid_despite_failures("b"), paid_despite_failures("c"))
    house.audit()
    house.call("POST", f"/v1/trajectories/{a['key']}/review", {"judgement": "accept", "note": ""})
    house.call("PUT", "/v1/environments/acme/terminal/versions/2026.11.1/state", {"state": "quarantined", "note": "broken"})
    first = house.get("/v1/decisions/snapshot", limit=1).json()
    rest = house.get("/v1/decisions/snapshot", limit=5, after=first["next"]).json()
    assert {d["trajectory"] for d in first["decisions"] + rest["decisions"]} == {"b", "c"}
    assert [(s["environment"], s["state"]) for s in first["states"]] == [("acme/terminal", "quarantined")]
    assert (first["seq"], rest["seq"], rest["next"]) == (5, 5, None)


def test_a_state_is_told_to_every_project_that_posted_it(house):
    house.post(envelope(id="a"))
    house.post(envelope(id="a"), holder="other-trainer")
    house.call("PUT", "/v1/environments/acme/terminal/versions/2026.11.1", {})
    told = house.call("PUT", "/v1/environments/acme/terminal/versions/2026.11.1/state", {"state": "quarantined", "note": "x"}, "acme-reviewer").json()
    assert (told["projects_told"], told["for_all"], told["state"], told["seq"]) == (2, True, "quarantined", 1)
    [decision] = house.get("/v1/decisions", "other-trainer").json()["decisions"]
    assert (decision["scope"], decision["action"], decision["state"]) == ("environment_version", "set_state", "quarantined")


def test_a_project_that_did_not_declare_it_sets_a_state_for_itself_alone_and_the_admin_for_all(house):
    state = "/v1/environments/acme/terminal/versions/2026.11.1/state"
    house.post(envelope(id="a"))
    house.post(envelope(id="a"), holder="other-trainer")
    house.call("PUT", state.removesuffix("/state"), {})
    told = house.call("PUT", state, {"state": "quarantined", "note": "x"}, "other-owner").json()
    assert (told["projects_told"], told["for_all"], told["state"]) == (1, False, "quarantined")
    assert [house.get(state.removesuffix("/state"), holder).json()["state"] for holder in ("acme-owner", "other-owner")] == ["active", "quarantined"]
    assert house.get("/v1/decisions").json()["decisions"] == []
    assert house.call("PUT", state, {"state": "probation", "note": "x"}, "admin").json()["projects_told"] == 2
    refused = house.call("PUT", state, {"state": "active", "note": "x"}, "other-owner")
    assert (refused.status_code, "probation for all" in refused.json()["error"]["reason"]) == (403, True)


def test_the_states_of_a_snapshot_are_paged_before_its_decisions(house):
    tasks = [f"t{at}" for at in range(5)]
    house.post(*(paid_despite_failures(task, task={"id": task}) for task in tasks))
    house.audit()
    for task in tasks:
        house.call("PUT", f"/v1/environments/acme/terminal/versions/2026.11.1/tasks/{task}/state", {"state": "retired", "note": "x"})
    pages = [house.get("/v1/decisions/snapshot", limit=2).json()]
    while pages[-1]["next"]:
        pages.append(house.get("/v1/decisions/snapshot", limit=2, after=pages[-1]["next"]).json())
    assert [s["task"] for page in pages for s in page["states"]] == tasks
    assert [d["trajectory"] for page in pages for d in page["decisions"]] == tasks
    assert max(len(page["states"]) for page in pages) == max(len(page["decisions"]) for page in pages) == 2


def test_lookup_tells_kept_ones_too_and_what_is_unknown(house):
    house.post(paid_despite_failures("bad"), envelope(id="good", group=None))
    house.audit()
    house.post(envelope(id="pending", task={"id": "else"}))
    found = house.call("POST", "/v1/decisions/lookup", {"ids": ["bad", "good", "pending", "none"]}, "acme-trainer").json()
    assert found["unknown"] == ["none"]
    assert found["decisions"]["pending"] is None
    assert found["decisions"]["good"] == {"action": "keep", "final": True, "mode": "observe", "enforced": True}
    assert found["decisions"]["bad"]["action"] == "exclude"
    assert found["decisions"]["bad"]["seq"] == 1


def test_lookup_waits_for_what_is_pending(house):
    house.post(paid_despite_failures("a"))
    timer = later(house.audit)
    found = house.call("POST", "/v1/decisions/lookup", {"ids": ["a"]}, "acme-trainer", wait=25).json()
    timer.join()
    assert found["decisions"]["a"]["action"] == "exclude"
    assert found["seq"] == 1


def test_an_enforced_run_is_told_to_hold_what_is_not_judged_yet(house):
    house.call("PUT", "/v1/runs/r", {"mode": "enforce"})
    [observed] = house.post(envelope(id="a"), wait=0.05)
    [held] = house.post(envelope(id="b", run={"id": "r"}), wait=0.05)
    assert "decision" not in observed
    assert (held["mode"], held["decision"]["action"], held["decision"]["final"]) == ("enforce", "hold", False)
    assert held["decision"]["until"]


def test_where_all_places_to_wait_are_taken_the_answer_comes_at_once(open_house):
    from inspector.settings import Limits

    house = open_house(limits=Limits(waiters=0))
    began = time.monotonic()
    assert house.get("/v1/decisions", wait=25).status_code == 200
    [receipt] = house.post(envelope(id="a"), wait=25)
    assert receipt["status"] == "created"
    assert time.monotonic() - began < 20


def test_a_revoked_check_is_superseded_in_one_act(house):
    [receipt] = house.post(paid_despite_failures("a"))
    house.audit()
    found = house.get(f"/v1/trajectories/{receipt['key']}").json()["findings"]
    asked = {"check": found[0]["check"], "version": found[0]["version"]}
    preview = house.call("POST", "/v1/decisions/revoke", asked).json()
    assert (preview["preview"], preview["decisions"] + preview["remaining"]) == (True, 1)
    assert house.get("/v1/decisions").json()["seq"] == 1
    if preview["decisions"]:
        done = house.call("POST", "/v1/decisions/revoke", {**asked, "preview": False}).json()
        assert done["decisions"] == 1
        assert [d["action"] for d in house.get("/v1/decisions", after=1).json()["decisions"]] == ["keep"]
