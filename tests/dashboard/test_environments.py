"""The pages of environments, in process, against the real API."""

from __future__ import annotations

import json

import pytest

from dashboard import keys, probed, session
from inspector.client.http import Api, ApiError
from inspector.probe.words import Outcome
from tests.dashboard import probing
from tests.dashboard.house import EVIL
from tests.dashboard.test_pages import given, texts

BEFORE = {"add": (Outcome.EXPLOITABLE,), "sub": (Outcome.SOUND,), "mul": (Outcome.FLAKY,), "old": (Outcome.SOUND,), "odd": (Outcome.WEAK_VERIFIER,)}
NOW = {
    "add": (Outcome.SOUND,),
    "sub": (Outcome.EXPLOITABLE, Outcome.WEAK_VERIFIER),
    "mul": (Outcome.FLAKY,),
    "odd": (Outcome.INCONCLUSIVE,),
    "fresh": (Outcome.SOUND,),
}
HOSTILE = "<img src=x onerror=alert(4)>\u202e"
PLACE = {"name": "acme/rows", "version": "2"}


@pytest.fixture(scope="module")
def versions(served):
    """Two versions that were probed, and one that was not, of which the text is hostile."""
    for version, outcomes in (("1", BEFORE), ("2", NOW)):
        probing.register(served, version)
        probing.start(served, version)
        probing.work(served, outcomes)
    probing.register(served, HOSTILE[:9], "acme/evil")
    probing.register(served, "1", "acme/untouched")
    return served


def rows(app, key):
    return {row["key"]: row for row in given(app, key)["listed"]["rows"]}


def chips(cell):
    return [chip["text"] for chip in cell["chips"]]


def facts(app):
    return [fact for section in given(app, "sheet")["sections"] for fact in section["facts"]]


def test_versions_are_listed_with_their_counts_and_their_newest_probe(pages, versions):
    listed = rows(pages(session.ENVIRONMENTS_PAGE), "versions")
    state, place, outcomes, probe = listed["acme/rows@2"]["cells"]
    assert (state["text"], place["text"], place["note"]) == ("active", "acme/rows@2", "owned here")
    assert chips(outcomes) == ["1 exploitable", "1 flaky", "1 weak verifier", "1 inconclusive", "2 sound"]
    assert (outcomes["note"], probe["text"], probe["note"]) == ("5 tasks probed", "done", "just now")
    assert listed["acme/rows@2"]["address"] == "/environment?name=acme%2Frows&version=2"
    assert [cell["text"] for cell in listed["acme/untouched@1"]["cells"]][-1] == "never"


def test_tasks_come_worst_first_and_the_worst_is_shown_with_its_proof(pages, versions):
    app = pages(session.ENVIRONMENT_PAGE, **PLACE)
    assert list(rows(app, "tasks")) == ["sub", "mul", "odd", "add", "fresh"]
    assert given(app, "tasks")["chosen"] == "sub"
    told = facts(app)
    assert [fact["text"] for fact in told if fact["tone"] == "command"] == [
        "inspector probe rows.jsonl",
        "inspector probe rows.jsonl --only p/exploitable",
        "inspector probe rows.jsonl --only p/weak_verifier",
    ]
    assert {"label": "state", "text": "quarantined", "tone": "quarantine"} in told
    assert {"label": "proof", "text": "return It pays for nothing.", "tone": "log"} in told
    assert "Probe done, just now · 5 of 5 tasks" in texts(app)
    assert len(list(app.main)) < 100


def test_a_task_of_the_address_is_shown_with_its_page_of_the_list(pages, versions, monkeypatch):
    app = pages(session.ENVIRONMENT_PAGE, **PLACE, task="odd")
    assert given(app, "tasks")["chosen"] == "odd"
    assert given(app, "sheet")["sections"][0]["title"] == "odd"
    app = pages(session.ENVIRONMENT_PAGE, **PLACE, task="not there")
    assert "No probe of this version said anything of not there." in texts(app)
    assert given(app, "tasks")["chosen"] is None


def test_two_versions_stand_side_by_side(pages, versions):
    app = pages(session.ENVIRONMENT_PAGE, **PLACE, against="1")
    told = {key: next(cell["text"] for cell in row["cells"]) for key, row in rows(app, "tasks").items()}
    assert told == {"sub": "worse", "fresh": "new", "add": "better", "old": "gone", "odd": "unclear", "mul": "as before"}
    assert chips(rows(app, "tasks")["add"]["cells"][2]) == ["exploitable"]
    app.selectbox(key="against").set_value(None).run()
    assert not app.exception
    assert list(rows(app, "tasks")) == ["sub", "mul", "odd", "add", "fresh"]


def test_an_owner_starts_a_probe_sees_how_far_it_is_and_ends_it(pages, versions):
    probing.register(versions, "3")
    app = pages(session.ENVIRONMENT_PAGE, holder="acme-owner", name="acme/rows", version="3")
    assert "No task was probed yet." in given(app, "tasks")["listed"]["empty"]
    app.session_state["probe-form"] = True
    app.run()
    app.number_input(key="probe-cpu").set_value(60.0)
    app.button(key="start probe").click().run()
    assert not app.exception
    assert "Probe queued, asked for just now · no task listed yet · 0.0 of 60 s CPU · quick, priority probe" in texts(app)
    probing.work(versions, NOW, most=2)
    app.button(key="look again").click().run()
    assert "Probe running, asked for just now · 2 of 5 tasks · 3.0 of 60 s CPU" in texts(app)
    app.button(key="cancel probe").click().run()
    assert not app.exception
    assert "Probe cancelled, just now · 2 of 5 tasks" in texts(app)
    assert "cancel probe" not in {button.key for button in app.button}


def test_who_owns_nothing_starts_nothing(pages, versions):
    app = pages(session.ENVIRONMENT_PAGE, holder="acme-reviewer", **PLACE)
    assert not {"start probe", "cancel probe"} & {button.key for button in app.button}
    assert "Owners of the project" in texts(app)
    assert "The service answered 404." in texts(pages(session.ENVIRONMENT_PAGE, holder="other-reviewer", **PLACE))


def test_a_task_is_released_with_a_note_and_a_confirmation(pages, versions):
    app = pages(session.ENVIRONMENT_PAGE, name="acme/rows", version="1", task="add", holder="acme-owner")
    app.session_state["state-open"] = True
    app.run()
    app.selectbox(key="state-wanted").select("active")
    app.text_input(key="state-note").set_value("its verifier was mended")
    app.checkbox(key="state-sure").check().run()
    app.button(key="set state").click().run()
    assert not app.exception
    assert {"label": "state", "text": "active", "tone": ""} in facts(app)
    with versions.api() as api:
        assert api.declaration("acme/rows", "1", task="add")["state"] == "active"


def test_nothing_foreign_is_given_to_the_pages_as_markup(pages, versions):
    evil = "acme/evil"
    version = HOSTILE[:9]
    probing.start(versions, version, evil)
    probing.work(versions, {HOSTILE: (Outcome.EXPLOITABLE,), "b": (Outcome.SOUND,)}, text=EVIL)
    shown = []
    for app in (pages(session.ENVIRONMENTS_PAGE), pages(session.ENVIRONMENT_PAGE, name=evil, version=version)):
        markup = [element.value for kind in (app.markdown, app.caption, app.subheader, app.title, app.header) for element in kind]
        assert not any("<" in text or "alert" in text for text in markup)
        assert not app.get("html")
        for element in app.get("bidi_component"):
            told = json.loads(element.proto.json)
            for row in told.get("listed", {}).get("rows", ()):
                row.pop("key")  # what the page calls the line by; no element holds it
            told.pop("chosen", None)
            shown.append(json.dumps(told, ensure_ascii=False))
    everything = "".join(shown)
    assert "onerror" in everything
    assert not {"\x1b", "\u202e", "\u200b"} & set(everything)


def test_every_button_that_acts_shows_its_key(pages, versions):
    app = pages(session.ENVIRONMENT_PAGE, holder="acme-owner", **PLACE)
    app.session_state["state-open"] = app.session_state["probe-form"] = True
    app.run()
    for shown, known in ((app, keys.ENVIRONMENT), (pages(session.ENVIRONMENTS_PAGE), keys.ENVIRONMENTS)):
        told = {button.key: button.proto.shortcut for button in shown.button}
        assert told
        assert told == {name: known[name] for name in told}


def test_the_list_asks_for_no_scorecard_of_any_version(pages, versions, monkeypatch):
    monkeypatch.setattr("inspector.client.http.Api.scorecard", lambda *_, **__: (_ for _ in ()).throw(ApiError(503, "asked for")))
    app = pages(session.ENVIRONMENTS_PAGE)
    assert not app.exception
    assert rows(app, "versions")["acme/rows@1"]["cells"][2]["chips"]


def test_a_version_is_read_as_far_as_it_is_shown(pages, versions, monkeypatch):
    asked = []
    read = Api.scorecard
    monkeypatch.setattr(probed, "AT_ONCE", 2)
    monkeypatch.setattr("inspector.client.http.Api.scorecard", lambda *given, **more: asked.append(more) or read(*given, **more))
    with versions.api() as api:
        monkeypatch.setattr(probed, "held", lambda _, ask: ask())
        assert [line["task"] for line in probed.scored_until(api, *PLACE.values(), None, 1).lines] == ["sub", "mul"]
        assert [line["task"] for line in probed.scored_until(api, *PLACE.values(), "odd", 1).lines] == ["sub", "mul", "odd", "add"]
        assert len(asked) == 1 + 2
        assert probed.scored(api, *PLACE.values()).whole
        assert probed.report(api, probed.newest_of(api, *PLACE.values())["id"], "odd")["task"] == "odd"
