"""Probes over the API: asked for by an owner, worked on with a prober's key, obeyed by the states of tasks."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest

from inspector.probe.words import Evidence, Family, Outcome, Run, TaskReport
from inspector.store import probes
from inspector.store.session import driver, transaction
from inspector.testing import envelope
from tests.api.conftest import House

VERSION = "/v1/environments/acme/rows/versions/1"
TAR = b"a tar"
SHA256 = hashlib.sha256(TAR).hexdigest()
DIGESTS = {"content_version": "c" * 64, "verifier_digest": "d" * 64}


@pytest.fixture
def registered(house: House) -> House:
    assert house.client.put(f"/v1/artifacts/{SHA256}", content=TAR, headers=house.auth()).status_code == 201
    assert house.call("PUT", f"{VERSION}/package", {"artifact": SHA256, "face": "rows", "entry": "rows.jsonl"}).status_code == 201
    return house


def start(house: House, **wanted: Any) -> str:
    answer = house.call("POST", f"{VERSION}/probes", wanted)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def claim(house: House) -> dict[str, Any] | None:
    answer = house.call("POST", "/v1/probe-work", holder="prober")
    return answer.json() if answer.status_code == 200 else None


def report(house: House, work: dict[str, Any], **said: Any) -> Any:
    return house.call("POST", f"/v1/probe-work/{work['work']}/report", said, "prober", lease=work["lease"])


def list_tasks(house: House, *tasks: str, **more: Any) -> None:
    work = claim(house)
    assert work is not None
    assert work["task"] is None
    assert report(house, work, listing={**DIGESTS, "tasks": tasks, **more}).status_code == 200


def said(task: str, *outcomes: Outcome, claim: str = "It pays.", cpu_s: float = 1.0, detail: str = "") -> TaskReport:
    return TaskReport(
        task=task,
        outcomes=outcomes or (Outcome.SOUND,),
        evidence=tuple(Evidence(outcome=outcome, probe="p", claim=claim, proof="x") for outcome in outcomes),
        runs=(Run(probe="reference", family=Family.REFERENCE, reward=0.0, paid=False, detail=detail),),
        cpu_s=cpu_s,
        wall_s=2.0,
    )


def work_off(house: House, **outcomes: tuple[Outcome, ...]) -> None:
    """Report of each task that waits what is given for it."""
    while (work := claim(house)) is not None:
        task = work["task"]
        answer = report(house, work, task=msgspec.to_builtins(said(task, *outcomes.get(task, ()), detail=f"its own way to fail, {task}")))
        assert answer.status_code == 200, answer.text


def lapse(house: House) -> None:
    """As if every worker had died."""
    with transaction(house.engine) as session:
        driver(session).execute("UPDATE probe_work SET until = now() - interval '1 s' WHERE until IS NOT NULL")


def read(house: House, probe: str) -> dict[str, Any]:
    answer = house.get(f"/v1/probes/{probe}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def states(house: House, holder: str = "acme-owner") -> dict[str, str]:
    return {one["task"]: one["state"] for one in house.get("/v1/decisions/snapshot", holder).json()["states"]}


def test_a_probe_goes_from_queued_to_done(registered: House) -> None:
    probe = start(registered, depth="full", budget={"cpu_s": 100})
    assert (read(registered, probe)["state"], read(registered, probe)["total"]) == ("queued", None)
    work = claim(registered)
    assert (work["task"], work["depth"], work["package"]["sha256"], work["package"]["entry"]) == (None, "full", SHA256, "rows.jsonl")
    fetched = registered.client.get(f"/v1/probe-work/{work['work']}/package", params={"lease": work["lease"]}, headers=registered.auth("prober"))
    assert fetched.content == TAR
    assert report(registered, work, listing={**DIGESTS, "tasks": ["a", "b"]}).status_code == 200
    assert (read(registered, probe)["state"], read(registered, probe)["done"], read(registered, probe)["total"]) == ("running", 0, 2)
    work_off(registered, b=(Outcome.WEAK_VERIFIER, Outcome.FALSE_REJECTING))
    done = read(registered, probe)
    assert (done["state"], done["done"], done["spent"]) == ("done", 2, {"cpu_s": 2.0, "wall_s": 4.0})
    assert done["outcomes"] == {"false_rejecting": 1, "sound": 1, "weak_verifier": 1}
    assert claim(registered) is None


def test_tasks_come_in_pages_with_their_reports(registered: House) -> None:
    probe = start(registered)
    list_tasks(registered, "a", "b", "c")
    work = claim(registered)
    report(registered, work, task=msgspec.to_builtins(said("a", Outcome.FLAKY)))
    claim(registered)
    first = registered.get(f"/v1/probes/{probe}/tasks", limit=2).json()
    assert [(t["task"], t["state"], t["outcomes"]) for t in first["tasks"]] == [("a", "done", ["flaky"]), ("b", "running", None)]
    assert msgspec.convert(first["tasks"][0]["report"], TaskReport) == msgspec.convert(msgspec.to_builtins(said("a", Outcome.FLAKY)), TaskReport)
    second = registered.get(f"/v1/probes/{probe}/tasks", limit=2, after=first["next"]).json()
    assert [(t["task"], t["state"]) for t in second["tasks"]] == [("c", "waiting")]
    assert second["next"] is None


def test_only_the_tasks_that_are_asked_for_are_probed(registered: House) -> None:
    probe = start(registered, tasks=["b", "z"])
    list_tasks(registered, "a", "b")
    work_off(registered)
    assert (read(registered, probe)["total"], read(registered, probe)["note"]) == (1, "no such tasks: z")
    nothing = start(registered, tasks=["z"])
    list_tasks(registered, "a", "b")
    assert read(registered, nothing)["state"] == "failed"


def test_a_package_that_cannot_be_read_fails_the_probe_with_the_reason(registered: House) -> None:
    probe = start(registered)
    report(registered, claim(registered), failure="rows.jsonl:1: no JSON")
    assert (read(registered, probe)["state"], read(registered, probe)["note"]) == ("failed", "rows.jsonl:1: no JSON")
    assert claim(registered) is None


def test_what_is_urgent_goes_first_but_a_backfill_waits_no_more_than_an_hour(registered: House) -> None:
    order = [start(registered, priority=priority) for priority in ("backfill", "probe", "live")]
    assert [claim(registered)["probe"] for _ in order] == order[::-1]
    lapse(registered)
    with transaction(registered.engine) as session:
        driver(session).execute("UPDATE probe_work SET due_at = due_at - interval '61 min' WHERE probe = %s", (order[0],))
    assert claim(registered)["probe"] == order[0]


def test_a_lease_that_ended_may_neither_renew_nor_report(registered: House) -> None:
    start(registered)
    lost = claim(registered)
    renew = f"/v1/probe-work/{lost['work']}/renew"
    assert registered.call("POST", renew, holder="prober", lease=lost["lease"]).json()["state"] == "running"
    lapse(registered)
    taken = claim(registered)
    assert taken["work"] == lost["work"]
    assert registered.call("POST", renew, holder="prober", lease=lost["lease"]).status_code == 409
    assert report(registered, lost, listing={**DIGESTS, "tasks": ["a"]}).status_code == 409
    assert report(registered, taken, listing={**DIGESTS, "tasks": ["a"]}).status_code == 200
    assert report(registered, taken, listing={**DIGESTS, "tasks": ["a"]}).status_code == 409


def test_done_tasks_stay_done_when_a_worker_dies(registered: House) -> None:
    probe = start(registered)
    list_tasks(registered, "a", "b")
    report(registered, claim(registered), task=msgspec.to_builtins(said("a")))
    assert claim(registered)["task"] == "b"
    lapse(registered)
    assert claim(registered)["task"] == "b"
    assert (read(registered, probe)["state"], read(registered, probe)["done"]) == ("running", 1)


def test_a_task_that_ends_three_workers_is_not_assessed(registered: House) -> None:
    probe = start(registered)
    list_tasks(registered, "a")
    for _ in range(3):
        assert claim(registered)["task"] == "a"
        lapse(registered)
    assert claim(registered) is None
    assert (read(registered, probe)["state"], read(registered, probe)["outcomes"]) == ("done", {"not_assessed": 1})
    [task] = registered.get(f"/v1/probes/{probe}/tasks").json()["tasks"]
    assert task["report"]["notes"] == ["its worker died three times"]
    assert states(registered) == {}


def test_a_spent_budget_leaves_the_rest_not_assessed(registered: House) -> None:
    probe = start(registered, budget={"cpu_s": 1.5})
    list_tasks(registered, "a", "b", "c", "d")
    work_off(registered)
    done = read(registered, probe)
    assert (done["state"], done["done"], done["outcomes"], done["note"]) == (
        "done", 4, {"not_assessed": 2, "sound": 2}, "the budget of 1.5 s of CPU is spent",
    )  # fmt: skip


def test_a_cancelled_probe_ends_before_its_next_task(registered: House) -> None:
    probe = start(registered)
    list_tasks(registered, "a", "b", "c")
    held = claim(registered)
    assert registered.call("POST", f"/v1/probes/{probe}/cancel").json()["state"] == "cancelled"
    assert claim(registered) is None
    assert report(registered, held, task=msgspec.to_builtins(said("a", Outcome.EXPLOITABLE))).json()["state"] == "cancelled"
    assert (read(registered, probe)["done"], read(registered, probe)["total"]) == (1, 3)
    assert states(registered) == {"a": "quarantined"}, "what was found stands"
    assert [t["task"] for t in registered.get(f"/v1/probes/{probe}/tasks").json()["tasks"]] == ["a"]
    assert registered.call("POST", f"/v1/probes/{probe}/cancel").status_code == 409


# --- states ----------------------------------------------------------------------------------------------------------


def test_outcomes_move_tasks_and_the_feed_says_why(registered: House) -> None:
    probe = start(registered)
    list_tasks(registered, "a", "b", "c", "d", "e")
    work_off(
        registered,
        a=(Outcome.UNSOLVABLE,),
        b=(Outcome.TRIVIALLY_PASSABLE, Outcome.WEAK_VERIFIER),
        c=(Outcome.FLAKY,),
        d=(Outcome.INCONCLUSIVE,),
        e=(Outcome.NOT_REPRODUCED,),
    )
    assert states(registered) == {"a": "quarantined", "b": "quarantined", "c": "watch"}
    told = {d["task"]: d for d in registered.get("/v1/decisions").json()["decisions"]}
    assert (told["b"]["author"], told["b"]["reasons"]) == ("policy:probe", [f"active -> quarantined: trivially_passable: It pays. (/v1/probes/{probe})"])


def test_where_every_task_fails_alike_nothing_is_held_against_them(registered: House) -> None:
    probe = start(registered)
    list_tasks(registered, "a", "b", "c")
    while (work := claim(registered)) is not None:
        report(registered, work, task=msgspec.to_builtins(said(work["task"], Outcome.UNSOLVABLE, detail="OSError: the disk is gone")))
    done = read(registered, probe)
    assert done["outcomes"] == {"not_reproduced": 3}
    assert "our own set-up is the first suspect" in done["note"]
    assert states(registered) == {}


def test_a_probe_is_never_laxer_than_a_person_and_a_release_after_it_stands(registered: House) -> None:
    probe = start(registered)
    list_tasks(registered, "a", "b", "c")
    for task, state in (("a", "quarantined"), ("b", "retired")):
        assert registered.call("PUT", f"{VERSION}/tasks/{task}/state", {"state": state, "note": "mine"}).status_code == 200
    assert registered.call("PUT", f"{VERSION}/tasks/c/state", {"state": "active", "note": "I looked: it is fine"}).status_code == 200
    work_off(registered, a=(Outcome.WEAK_VERIFIER,), b=(Outcome.EXPLOITABLE,), c=(Outcome.EXPLOITABLE,))
    assert states(registered) == {"a": "quarantined", "b": "retired"}
    assert read(registered, probe)["outcomes"] == {"exploitable": 2, "weak_verifier": 1}


def test_trajectories_of_a_suspect_task_are_audited_again(registered: House) -> None:
    registered.post(*(envelope(id=f"t{at}", environment={"id": "acme/rows", "version": "1"}, task={"id": "a"}, group=None, run=None) for at in range(3)))
    registered.audit()
    assert registered.get("/v1/trajectories/by-id/t0").json()["summary"]["verdict"] == "accept"
    start(registered)
    list_tasks(registered, "a", "b")
    work_off(registered, a=(Outcome.EXPLOITABLE,))
    with transaction(registered.engine) as session:
        assert driver(session).execute("SELECT count(*), min(priority) FROM work").fetchone() == (3, 10)
    assert registered.audit() == 3
    for at in range(3):
        now = registered.get(f"/v1/trajectories/by-id/t{at}").json()
        assert (now["summary"]["verdict"], now["summary"]["action"], now["summary"]["cause"]) == ("flag", "keep", "verifier_defect")
        assert [finding["check"] for finding in now["findings"]] == ["builtin/scored_by_a_verifier_that_a_probe_broke"]


# --- scorecards ------------------------------------------------------------------------------------------------------

GRADED = {
    "a": (Outcome.SOUND,),
    "b": (Outcome.WEAK_VERIFIER, Outcome.FLAKY),
    "c": (Outcome.FLAKY,),
    "d": (Outcome.EXPLOITABLE,),
    "e": (Outcome.INCONCLUSIVE,),
    "f": (Outcome.FLAKY,),
}


@pytest.fixture
def graded(registered: House) -> House:
    start(registered)
    list_tasks(registered, *GRADED)
    work_off(registered, **GRADED)
    return registered


def scored(house: House, **parameters: Any) -> list[str]:
    """The tasks of a scorecard, page by page."""
    tasks, after = [], None
    while True:
        page = house.get(f"{VERSION}/scorecard", **parameters, **({"after": after} if after else {})).json()
        tasks += [one["task"] for one in page["tasks"]]
        if (after := page["next"]) is None:
            return tasks


@pytest.mark.parametrize("limit", [1, 2, 50])
def test_a_scorecard_comes_worst_first(graded: House, limit: int) -> None:
    assert scored(graded, limit=limit) == ["d", "b", "c", "f", "e", "a"]


@pytest.mark.parametrize("limit", [1, 2, 50])
def test_a_scorecard_is_narrowed_to_one_outcome(graded: House, limit: int) -> None:
    assert scored(graded, limit=limit, outcome="flaky") == ["b", "c", "f"]
    assert scored(graded, limit=limit, outcome="weak_verifier") == ["b"]
    assert scored(graded, limit=limit, outcome="unsolvable") == []
    assert graded.get(f"{VERSION}/scorecard", outcome="bad").status_code == 422


def test_a_narrowed_scorecard_goes_on_where_a_page_ended_and_reads_nothing_that_cannot_have_it(graded: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "SCAN", 2)
    assert scored(graded, limit=50, outcome="weak_verifier") == ["b"]
    assert scored(graded, limit=50, outcome="sound") == ["a"]
    assert graded.get(f"{VERSION}/scorecard", outcome="exploitable").json()["next"] is None


def test_every_outcome_has_a_place_in_the_order() -> None:
    assert set(probes.WORST_FIRST) == set(Outcome)


def test_counts_follow_what_was_said_last(graded: House) -> None:
    start(graded, tasks=["a", "b", "c"])
    list_tasks(graded, *GRADED)
    work_off(graded, a=(Outcome.NOT_ASSESSED,), b=(Outcome.EXPLOITABLE,), c=(Outcome.SOUND,))
    card = graded.get(f"{VERSION}/scorecard").json()
    assert (card["probed"], card["counts"]) == (6, {"exploitable": 2, "flaky": 1, "inconclusive": 1, "sound": 2})
    assert scored(graded) == ["b", "d", "f", "e", "a", "c"]
    [line] = graded.get("/v1/environments").json()["environments"]
    assert (line["probed"], line["counts"], line["probed_at"]) == (6, card["counts"], card["probed_at"])


def test_counts_follow_what_is_said_of_tasks_once_all_of_the_probe_was_seen(registered: House) -> None:
    start(registered)
    list_tasks(registered, "a", "b", "c")
    while (work := claim(registered)) is not None:
        report(registered, work, task=msgspec.to_builtins(said(work["task"], Outcome.UNSOLVABLE, detail="OSError: the disk is gone")))
    card = registered.get(f"{VERSION}/scorecard").json()
    assert (card["probed"], card["counts"], [one["outcomes"] for one in card["tasks"]]) == (3, {"not_reproduced": 3}, [["not_reproduced"]] * 3)


def test_a_version_without_a_package_has_an_empty_scorecard(house: House) -> None:
    house.post(envelope(id="x", environment={"id": "acme/rows", "version": "1"}, task={"id": "a"}))
    card = house.get(f"{VERSION}/scorecard").json()
    assert (card["probed"], card["counts"], card["tasks"], card["probed_at"]) == (0, {}, [], None)
    [line] = house.get("/v1/environments").json()["environments"]
    assert (line["probed"], line["counts"], line["probed_at"]) == (0, {}, None)


def test_one_task_of_a_probe_is_read_alone(registered: House) -> None:
    probe = start(registered)
    list_tasks(registered, "folder/a", "b")
    report(registered, claim(registered), task=msgspec.to_builtins(said("folder/a", Outcome.FLAKY)))
    one = registered.get(f"/v1/probes/{probe}/tasks/folder/a").json()
    assert (one["task"], one["state"], one["outcomes"], one["report"]["task"]) == ("folder/a", "done", ["flaky"], "folder/a")
    assert registered.get(f"/v1/probes/{probe}/tasks/b").json()["state"] == "waiting"
    assert registered.get(f"/v1/probes/{probe}/tasks/c").status_code == 404


def test_probes_of_one_version_are_listed_alone(registered: House) -> None:
    made = [start(registered) for _ in range(3)]
    place = {"environment": "acme/rows", "version": "1"}
    assert registered.call("PUT", "/v1/environments/acme/rows/versions/2/package", {"artifact": SHA256}).status_code == 201
    assert registered.call("POST", "/v1/environments/acme/rows/versions/2/probes", {}).status_code == 201
    first = registered.get("/v1/probes", limit=2, **place).json()
    second = registered.get("/v1/probes", limit=2, after=first["next"], **place).json()
    assert [one["id"] for one in (*first["probes"], *second["probes"])] == made[::-1]
    assert registered.get("/v1/probes", environment="acme/rows").json()["error"]["path"] == "query.version"
    assert registered.get("/v1/probes", environment="acme/rows", version="3").status_code == 404


# --- who may ----------------------------------------------------------------------------------------------------------


def test_a_version_that_was_probed_keeps_its_package(registered: House) -> None:
    other = hashlib.sha256(b"another").hexdigest()
    registered.client.put(f"/v1/artifacts/{other}", content=b"another", headers=registered.auth())
    assert registered.call("PUT", f"{VERSION}/package", {"artifact": other}).status_code == 200
    assert registered.call("PUT", f"{VERSION}/package", {"artifact": SHA256}).status_code == 200
    start(registered)
    list_tasks(registered, "a")
    again = registered.call("PUT", f"{VERSION}/package", {"artifact": SHA256})
    assert (again.status_code, again.json()["content_version"]) == (200, "c" * 64)
    assert registered.call("PUT", f"{VERSION}/package", {"artifact": other}).status_code == 409


def test_a_package_is_shown_to_who_registered_it(registered: House) -> None:
    shown = registered.get(f"{VERSION}/package", "acme-trainer").json()
    assert (shown["artifact"], shown["face"], shown["entry"], shown["content_version"]) == (SHA256, "rows", "rows.jsonl", None)
    registered.post(envelope(id="x", environment={"id": "acme/rows", "version": "1"}, task={"id": "a"}), holder="other-trainer")
    assert registered.get(f"{VERSION}/scorecard", "other-reviewer").status_code == 200
    assert registered.get(f"{VERSION}/package", "other-reviewer").status_code == 404


NAMED = "/v1/environments/acme/named/versions/1"
ADDRESS = "https://judge.example/verify"


@pytest.mark.parametrize(
    "wanted",
    [
        {"face": "reasoning_gym", "entry": "chain_sum"},
        {"face": "verifiers", "entry": "acme/wordle@1.2"},
        {"face": "verifiers", "entry": "wordle", "artifact": SHA256},
        {"face": "http_verifier", "entry": ADDRESS, "artifact": SHA256, "dataset": "rows.jsonl"},
    ],
    ids=["a data set", "an installed environment", "an uploaded one", "a served verifier"],
)
def test_what_is_named_is_registered_and_its_probe_says_what_to_open(registered: House, wanted: dict[str, Any]) -> None:
    assert registered.call("PUT", f"{NAMED}/package", wanted).status_code == 201
    assert registered.call("PUT", f"{NAMED}/package", wanted).status_code == 200
    shown = registered.get(f"{NAMED}/package").json()
    assert {name: shown[name] for name in ("artifact", "face", "entry", "dataset")} == {"artifact": None, "dataset": None, **wanted}
    assert registered.call("POST", f"{NAMED}/probes", {}).status_code == 201
    work = claim(registered)
    assert work is not None
    assert (work["package"]["face"], work["package"]["entry"], work["package"]["sha256"]) == (wanted["face"], wanted["entry"], wanted.get("artifact"))
    fetched = registered.client.get(f"/v1/probe-work/{work['work']}/package", params={"lease": work["lease"]}, headers=registered.auth("prober"))
    assert fetched.status_code == (200 if "artifact" in wanted else 404)


@pytest.mark.parametrize(
    ("wanted", "path"),
    [
        ({}, "$.artifact"),
        ({"face": "rows"}, "$.artifact"),
        ({"face": "reasoning_gym"}, "$.entry"),
        ({"face": "reasoning_gym", "entry": "../x"}, "$.entry"),
        ({"face": "reasoning_gym", "entry": "chain_sum", "artifact": SHA256}, "$.artifact"),
        ({"face": "verifiers", "entry": "--help me"}, "$.entry"),
        ({"face": "http_verifier", "entry": "file:///etc/passwd", "artifact": SHA256, "dataset": "r"}, "$.entry"),
        ({"face": "http_verifier", "entry": ADDRESS, "dataset": "r"}, "$.artifact"),
        ({"face": "http_verifier", "entry": ADDRESS, "artifact": SHA256}, "$.dataset"),
    ],
)
def test_a_package_of_which_a_part_is_missing_is_refused(registered: House, wanted: dict[str, Any], path: str) -> None:
    refused = registered.call("PUT", f"{NAMED}/package", wanted)
    assert (refused.status_code, refused.json()["error"]["path"]) == (422, path)


def test_a_package_must_have_been_uploaded_by_this_project(registered: House) -> None:
    assert registered.call("PUT", "/v1/environments/other/x/versions/1/package", {"artifact": SHA256}, "other-owner").status_code == 404


def test_another_project_sees_the_scorecard_of_what_it_posted_and_may_not_probe_it(registered: House) -> None:
    start(registered)
    list_tasks(registered, "a", "b", hints=[{"rule": "r", "path": "t.py", "line": 1, "message": "m"}])
    work_off(registered, a=(Outcome.FLAKY,))
    assert registered.get(f"{VERSION}/scorecard", "other-reviewer").status_code == 404
    registered.post(envelope(id="x", environment={"id": "acme/rows", "version": "1"}, task={"id": "a"}), holder="other-trainer")
    seen, ours = (registered.get(f"{VERSION}/scorecard", holder).json() for holder in ("other-reviewer", "acme-reviewer"))
    assert (seen["probed"], seen["counts"], seen["hints"]) == (2, {"flaky": 1, "sound": 1}, [])
    assert [one["rule"] for one in ours["hints"]] == ["r"]
    assert [(one["task"], one["outcomes"]) for one in seen["tasks"]] == [("a", ["flaky"]), ("b", ["sound"])]
    assert registered.call("POST", f"{VERSION}/probes", {}, "other-owner").status_code == 403


def test_what_could_not_be_assessed_does_not_hide_what_was_said_before(registered: House) -> None:
    for outcome in (Outcome.WEAK_VERIFIER, Outcome.NOT_ASSESSED):
        start(registered)
        list_tasks(registered, "a")
        work_off(registered, a=(outcome,))
    assert registered.get(f"{VERSION}/scorecard").json()["counts"] == {"weak_verifier": 1}


def test_probes_are_listed_newest_first(registered: House) -> None:
    made = [start(registered) for _ in range(3)]
    first = registered.get("/v1/probes", limit=2).json()
    second = registered.get("/v1/probes", limit=2, after=first["next"]).json()
    assert [one["id"] for one in (*first["probes"], *second["probes"])] == made[::-1]
    assert registered.get("/v1/probes", "other-owner").json()["probes"] == []


def test_only_an_admin_makes_keys_of_probers(registered: House) -> None:
    wanted = {"name": "sandbox", "role": "prober"}
    assert registered.call("POST", "/v1/keys", wanted).status_code == 403
    assert registered.call("POST", "/v1/keys", {**wanted, "project": "acme"}, "admin").status_code == 422
    assert registered.call("POST", "/v1/keys", wanted, "admin").status_code == 201


def test_metrics_count_probes_that_wait_and_that_run(registered: House) -> None:
    start(registered)
    start(registered)
    claim(registered)
    text = registered.client.get("/metrics").text
    assert 'inspector_probes{state="queued"} 1.0' in text
    assert 'inspector_probes{state="running"} 1.0' in text
