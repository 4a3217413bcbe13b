"""Both pages, in process, against the real API."""

from __future__ import annotations

import json
import re

import pytest

from dashboard import keys, session
from tests.dashboard.house import EVIL, paid_despite_failures, with_steps


def given(app, key):
    """What a component was given."""
    [found] = [element for element in app.get("bidi_component") if key in element.proto.id]
    return json.loads(found.proto.json)


def texts(app):
    return "\n".join(element.value for kind in (app.text, app.caption, app.markdown, app.code, app.error) for element in kind)


@pytest.fixture
def waiting(served):
    """Three that wait for a person; producer id -> key."""
    hostile = {"environment": {"id": "acme/<b>", "version": "1"}, "errors": [{"type": "E", "boundary": "tool", "message": EVIL}]}
    return served.post(
        paid_despite_failures("one", run={"id": "r", "step": 3}),
        paid_despite_failures("two"),
        with_steps([{"step_id": 1, "source": "user", "message": EVIL}], id="evil", **hostile),
    )


def test_nobody_sees_anything_without_signing_in(pages):
    app = pages(holder=None)
    assert "inspector login" in texts(app)
    assert not app.get("bidi_component")


def test_a_revoked_session_is_told_to_sign_in_again(pages, served, monkeypatch):
    served.keys["gone"] = "ins_session_" + "x" * 43
    assert "Your session has ended." in [h.value for h in pages(holder="gone").subheader]


def test_triage_says_what_waits_and_why(pages, waiting):
    app = pages()
    rows = {row["key"]: row for row in given(app, "list")["rows"]}
    row = rows[waiting["one"]]
    assert (row["verdict"], row["reward"], row["action"].split()[0]) == ("quarantine", "1", "exclude")
    assert "timed out" in row["why"]
    assert "evidence · infrastructure" in row["source"]
    assert row["address"] == f"/episode?key={waiting['one']}"
    assert row["size"].endswith("B")
    assert re.search(r"Triage: \d+ waiting \(\d+ quarantine.*\) · \d+ reviewed today", texts(app))
    assert len(list(app.main)) < 100


def test_filters_stand_in_the_address_and_narrow_at_the_service(pages, waiting):
    app = pages(run="r")
    rows = given(app, "list")["rows"]
    assert [row["key"] for row in rows] == [waiting["one"]]
    assert rows[0]["address"].endswith("&run=r")
    app.text_input(key="run").set_value("no such run").run()
    assert not app.exception
    assert (given(app, "list")["rows"], given(app, "list")["empty"]) == ([], "Nothing that waits matches the filters.")
    app.button(key="all").click().run()
    assert not app.exception
    assert waiting["one"] in [row["key"] for row in given(app, "list")["rows"]]


def test_an_episode_opens_from_a_narrowed_list(pages, waiting):
    app = pages(run="r")
    app.button(key="open").click().run()
    assert not app.exception
    assert given(app, "transcript")["key"] == waiting["one"]


def test_a_judgement_in_triage_goes_to_the_next(pages, waiting, served):
    app = pages()
    first = given(app, "list")["chosen"]
    app.text_input(key=f"note-{first}").set_value("looks right")
    app.button(key="accept").click().run()
    assert not app.exception
    assert given(app, "list")["chosen"] != first
    with served.api() as api:
        detail = api.trajectory(first)
    assert (detail["summary"]["verdict"], detail["reviews"][0]["note"], detail["by_person"]) == ("accept", "looks right", True)


def test_an_episode_shows_what_is_known(pages, waiting):
    app = pages(session.EPISODE_PAGE, key=waiting["one"], step="0")
    told = given(app, "transcript")
    assert (told["key"], told["target"]) == (waiting["one"], {"step": 0})
    assert told["findings"][0]["tier"] == "evidence"
    assert told["title"]["task"] == "fix-nginx"
    facts = [(fact["label"], fact["text"]) for section in given(app, "sheet")["sections"] for fact in section["facts"]]
    assert ("id", "one") in facts
    assert ("reward", "1") in facts
    assert any(label == "feed" and text.startswith("logged as seq ") for label, text in facts)
    assert any(label == "not assessed" and "—" in text for label, text in facts)
    assert any(label.startswith("seq ") and "policy:default" in text for label, text in facts)
    assert len(list(app.main)) < 100


def test_nothing_foreign_is_given_to_a_page_as_markup(pages, waiting):
    app = pages(session.EPISODE_PAGE, key=waiting["evil"])
    markup = [element.value for kind in (app.markdown, app.caption, app.subheader, app.title, app.header) for element in kind]
    assert not any("<" in text or "alert" in text for text in markup)
    assert not app.get("html")
    everything = json.dumps([json.loads(element.proto.json) for element in app.get("bidi_component")], ensure_ascii=False)
    assert "onerror" in everything
    assert not {"\x1b", "\u202e", "\u200b"} & set(everything)


def test_every_button_that_acts_shows_its_key(pages, waiting):
    triage, episode = pages(run="r"), pages(session.EPISODE_PAGE, key=waiting["one"])
    for app, known in ((triage, keys.TRIAGE), (episode, keys.EPISODE)):
        app.button(key="override").click().run()
        app.session_state["state-open"] = True
        app.run()
        shown = {button.key: button.proto.shortcut for button in app.button}
        assert shown == {name: known[name] for name in shown}
    assert set(keys.JUDGING) <= {button.key for button in triage.button} & {button.key for button in episode.button}
    assert "set state" in {button.key for button in episode.button}


def test_a_judgement_names_the_cause_that_was_found_unless_a_person_chooses_another(pages, served):
    own = served.post(*(paid_despite_failures(name, run={"id": "caused"}) for name in ("found", "other", "fine")))

    def told(name):
        with served.api() as api:
            return api.trajectory(own[name])

    app = pages(session.EPISODE_PAGE, key=own["found"])
    assert app.selectbox(key=f"cause-{own['found']}").value == "infrastructure"
    app.button(key="quarantine").click().run()
    assert not app.exception
    assert (told("found")["summary"]["cause"], told("found")["reviews"][0]["cause"]) == ("infrastructure", "infrastructure")
    app = pages(session.EPISODE_PAGE, key=own["other"])
    app.selectbox(key=f"cause-{own['other']}").select("environment_defect")
    app.button(key="quarantine").click().run()
    assert told("other")["summary"]["cause"] == told("other")["decisions"][-1]["cause"] == "environment_defect"
    app = pages(session.EPISODE_PAGE, key=own["fine"])
    app.button(key="accept").click().run()
    assert (told("fine")["summary"]["verdict"], told("fine")["reviews"][0]["cause"]) == ("accept", None)


def test_an_override_keeps_to_the_declared_range(pages, served, waiting):
    app = pages(session.EPISODE_PAGE, key=waiting["two"])
    with served.api() as api:
        line = api.trajectory(waiting["two"])["summary"]
        api.declare(line["environment"], line["version"], {"reward": {"min": 0, "max": 1}})
    app.button(key="override").click().run()
    assert "declared 0 to 1" in texts(app)
    app.number_input(key=f"reward-{waiting['two']}").set_value(7.0)
    app.button(key="set reward").click().run()
    assert "That was not done." in texts(app)
    assert "outside what the environment declares" in texts(app)
    app.number_input(key=f"reward-{waiting['two']}").set_value(0.0)
    app.button(key="set reward").click().run()
    with served.api() as api:
        summary = api.trajectory(waiting["two"])["summary"]
    assert (summary["action"], summary["reward_override"]) == ("override_reward", 0.0)


def test_what_was_not_scored_is_not_zero_and_cannot_be_overridden(pages, served):
    keys = served.post(paid_despite_failures("unscored") | {"reward": None})
    app = pages(session.EPISODE_PAGE, key=keys["unscored"])
    facts = [fact for section in given(app, "sheet")["sections"] for fact in section["facts"]]
    assert {"label": "reward", "text": "not scored", "tone": "none"} in facts


def test_a_task_is_quarantined_with_a_note_and_a_confirmation(pages, served, waiting):
    app = pages(session.EPISODE_PAGE, key=waiting["one"])
    app.session_state["state-open"] = True
    app.run()
    assert app.button(key="set state").disabled
    app.text_input(key="state-note").set_value("its verifier pays after a timeout")
    app.checkbox(key="state-sure").check().run()
    app.button(key="set state").click().run()
    assert not app.exception
    with served.api() as api:
        line = api.trajectory(waiting["one"])["summary"]
        assert api.declaration(line["environment"], line["version"], task=line["task"])["state"] == "quarantined"


def test_a_trainers_report_says_that_the_decision_came_late(pages, served, waiting):
    with served.api("acme-trainer") as api:
        api.post_step("r", 3, {"policy_before": 3, "policy_after": 4, "used": [{"id": "one", "weight": 1.0, "reward": 1.0}], "feed": {"epoch": None, "seq": 0}})
    app = pages(session.EPISODE_PAGE, key=waiting["one"])
    facts = {fact["label"]: fact["text"] for fact in given(app, "sheet")["sections"][0]["facts"]}
    assert facts["step 3"] == "was trained on it with weight 1 at reward 1, having read the feed to 0: before this decision"


def test_an_episode_of_another_project_is_not_there(pages, waiting):
    app = pages(session.EPISODE_PAGE, holder="other-reviewer", key=waiting["one"])
    assert "The service answered 404." in texts(app)


def test_an_episode_is_found_by_its_producers_id(pages, waiting):
    app = pages(session.EPISODE_PAGE)
    app.text_input(key="wanted").set_value("one").run()
    assert not app.exception
    assert given(app, "transcript")["key"] == waiting["one"]
