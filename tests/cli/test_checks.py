"""What `inspector checks` tells of the installed checks."""

import pytest

from inspector import catalog
from inspector.testing import envelope


def test_every_installed_check_is_listed(run):
    ran = run("checks", "list", "--json")
    assert [line["check"] for line in ran.lines] == list(catalog.load().checks)
    assert {line["status"] for line in ran.lines} == {"installed"}
    table = run("checks", "list").out
    assert all(name in table for name in catalog.load().checks)


def test_broken_and_duplicate_checks_are_listed_too(run, monkeypatch):
    left = catalog.Catalog({}, (catalog.LeftOut("acme", "no module"),), (catalog.LeftOut("a/b", "twice"),))
    monkeypatch.setattr(catalog, "load", lambda: left)
    assert [(line["status"], line["check"]) for line in run("checks", "list", "--json").lines] == [("broken", "acme"), ("duplicate", "a/b")]
    assert "no module" in run("checks", "list").out


@pytest.mark.parametrize("name", ["ending_contradicts_itself", "builtin/ending_contradicts_itself"])
def test_a_check_is_shown_with_its_parameters_and_examples(run, name):
    assert "The record says that the agent finished" in run("checks", "show", name).out
    (line,) = run("checks", "show", name, "--json").lines
    assert line["check"] == "builtin/ending_contradicts_itself"
    assert line["flagged"]
    assert line["clean"]


def test_a_check_that_does_not_exist_is_wrong_usage(run):
    ran = run("checks", "show", "ending_contradict_itself")
    assert ran.code == 2
    assert "did you mean 'builtin/ending_contradicts_itself'" in ran.err


def test_one_check_runs_alone(run, written):
    file = written(envelope(termination={"reason": "submitted", "truncated": True}, group=None))
    ran = run("checks", "run", "ending_contradicts_itself", file, "--json", "--fail-on", "flagged")
    assert ran.code == 1
    assert ran.lines[0]["coverage"] == {"builtin/ending_contradicts_itself": "flagged"}
