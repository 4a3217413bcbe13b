"""Searching the steps of one trajectory, and the narrowed triage list."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.api.routes import search
from inspector.step_texts import decoded, field_texts
from inspector.testing import envelope
from tests.api.conftest import paid_despite_failures


def with_steps(steps, **overrides):
    return envelope(trajectory={"schema_version": "ATIF-v1.6", "agent": {"name": "a", "version": "1"}, "steps": steps}, **overrides)


STEPS = [
    {"step_id": 1, "source": "user", "message": "Fix the Needle in nginx"},
    {
        "step_id": 2,
        "source": "agent",
        "message": "looking",
        "reasoning_content": "no needle here? NEEDLE",
        "tool_calls": [{"tool_call_id": "c", "function_name": "bash", "arguments": {"command": "grep needle", "flags": {"deep": ["needle"]}}}],
        "observation": {"results": [{"source_call_id": "c", "content": [{"type": "text", "text": "a 😀 needle"}]}]},
    },
]


def found(house, key, q, **parameters):
    return house.get(f"/v1/trajectories/{key}/search", q=q, **parameters).json()


def test_a_search_finds_every_text_of_a_step_whatever_the_case(house):
    [receipt] = house.post(with_steps(STEPS, id="a"))
    answer = found(house, receipt["key"], "needle")
    assert answer["total"] == answer["scanned"] == 2
    assert answer["next"] is None
    assert [(m["step"], m["field"], m["start"]) for m in answer["matches"]] == [
        (0, "message", 8),
        (1, "reasoning_content", 3),
        (1, "reasoning_content", 16),
        (1, "tool_calls[0].arguments.command", 5),
        (1, "tool_calls[0].arguments.flags", 10),
        (1, "observation.results[0].content", 4),
    ]
    assert (answer["matches"][5]["before"], answer["matches"][5]["match"]) == ("a 😀 ", "needle")


def test_a_search_is_literal_and_bounded(house, monkeypatch):
    monkeypatch.setattr(search, "SCAN_STEPS", 300)
    many = [{"step_id": n + 1, "source": "agent", "message": "a.b" if n == 700 else "aXb"} for n in range(1000)]
    [receipt] = house.post(with_steps(many, id="a"))
    steps, after, calls = [], None, 0
    while True:
        answer = found(house, receipt["key"], "a.b", after=after) if after else found(house, receipt["key"], "a.b")
        steps += [m["step"] for m in answer["matches"]]
        after, calls = answer["next"], calls + 1
        if after is None:
            break
    assert steps == [700]
    assert calls == 2


def test_matches_beyond_the_first_hundred_of_a_step_are_counted(house):
    [receipt] = house.post(with_steps([{"step_id": 1, "source": "user", "message": "x" * 250}], id="a"))
    answer = found(house, receipt["key"], "x")
    assert (len(answer["matches"]), answer["omitted"]) == (100, 150)


@pytest.mark.parametrize(("holder", "status"), [("other-reviewer", 404), ("acme-trainer", 403), ("acme-reviewer", 200)])
def test_a_search_sees_its_own_project_alone(house, holder, status):
    [receipt] = house.post(with_steps(STEPS, id="a"))
    assert house.get(f"/v1/trajectories/{receipt['key']}/search", holder, q="x").status_code == status


def test_a_search_refuses_an_empty_text_and_a_foreign_cursor(house):
    [receipt] = house.post(with_steps(STEPS, id="a"))
    assert house.get(f"/v1/trajectories/{receipt['key']}/search", q="").status_code == 422
    assert house.get(f"/v1/trajectories/{receipt['key']}/search", q="x", after="nonsense").status_code == 422


@given(st.text(max_size=200))
def test_lower_case_keeps_every_character_at_its_place(text):
    assert len(search._lowered(text)) == len(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8),
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=8), v, max_size=3),
    max_leaves=12,
)
step_like = st.fixed_dictionaries({}, optional=dict.fromkeys(("message", "reasoning_content", "tool_calls", "observation", "source"), json_values))


@given(step_like | json_values)
def test_a_step_of_any_shape_has_texts(step):
    assert all(isinstance(field, str) and isinstance(text, str) for field, text in field_texts(decoded(msgspec.json.encode(step))))


@pytest.mark.parametrize("raw", [b'{"message": "\\ud800x"}', b'{"message": 1e999}', b'{"message": ' + b"[" * 5000 + b"]" * 5000 + b"}"])
def test_what_one_decoder_refuses_is_still_searched(raw):
    assert list(field_texts(decoded(raw)))


def test_triage_says_why_and_can_be_narrowed(house):
    house.post(
        paid_despite_failures("a", environment={"id": "acme/one", "version": "1"}, run={"id": "r1"}),
        paid_despite_failures("b", environment={"id": "acme/two", "version": "1"}),
    )
    house.audit()
    everything = house.get("/v1/triage").json()["trajectories"]
    assert {line["id"] for line in everything} == {"a", "b"}
    assert all(line["why"] and line["why_check"].startswith("builtin/") and line["why_tier"] == "evidence" and line["why_cause"] for line in everything)

    def ids(**parameters):
        page = house.get("/v1/triage", **parameters).json()
        return [line["id"] for line in page["trajectories"]], page["scanned"], page["next"]

    assert ids(environment="acme/one", version="1") == (["a"], 2, None)
    assert ids(run="r1") == (["a"], 2, None)
    assert ids(run="no such run") == ([], 0, None)
    assert ids(verdict="flag") == ([], 2, None)
    assert len(ids(verdict="quarantine", cause=everything[0]["why_cause"])[0]) == 2
    assert house.get("/v1/triage", environment="acme/one").status_code == 422
    counts = house.get("/v1/triage/counts").json()
    assert (counts["waiting"], counts["reviewed_today"], counts["most"]) == ({"quarantine": 2, "flag": 0}, 0, 10_000)
    assert counts["today"].endswith("T00:00:00Z")
    first = house.get("/v1/triage", verdict="quarantine", limit=1).json()
    second = house.get("/v1/triage", verdict="quarantine", limit=1, after=first["next"]).json()
    assert {first["trajectories"][0]["id"], second["trajectories"][0]["id"]} == {"a", "b"}
    assert second["next"] is None


def test_a_review_names_a_cause_or_is_told_which_there_are(house):
    [a] = house.post(paid_despite_failures("a"))
    house.audit()
    review = f"/v1/trajectories/{a['key']}/review"
    refused = house.call("POST", review, {"judgement": "quarantine", "cause": "boredom"})
    assert (refused.status_code, refused.json()["error"]["path"]) == (422, "$.cause")
    assert house.call("POST", review, {"judgement": "accept", "cause": "anomaly"}).json()["error"]["path"] == "$.cause"
    assert house.get("/v1/triage/counts").json()["reviewed_today"] == 0
    decision = house.call("POST", review, {"judgement": "quarantine", "cause": "environment_defect"}).json()
    assert decision["cause"] == "environment_defect"
    told = house.get(f"/v1/trajectories/{a['key']}").json()
    assert (told["summary"]["cause"], told["reviews"][0]["cause"]) == ("environment_defect", "environment_defect")
    assert house.get("/v1/triage/counts").json()["reviewed_today"] == 1


def test_the_steps_of_a_run_can_be_read_from_one_on(house):
    for step in (1, 5, 9):
        assert house.call("POST", f"/v1/runs/r/steps/{step}", {"policy_before": 1, "policy_after": 2}, "acme-trainer").status_code == 201
    assert [s["step"] for s in house.get("/v1/runs/r/steps", start=5).json()["steps"]] == [5, 9]
