"""What code scanning is given."""

import json
import re

import pytest
from jsonschema import Draft202012Validator

from inspector.probe.words import Hint, Outcome
from inspector.reports import sarif as module
from inspector.reports.baseline import Baseline
from inspector.reports.probed import Probed
from inspector.reports.sarif import MESSAGE, sarif
from tests.reports.house import AT, UNSEEN, environment, evidence, hostile, probed, task
from tests.reports.sarif_schema import LOG

GUESSED = Hint(rule="prints-expected", path="tests/test.sh", line=4, message="It prints the expected value.")


def results(report):
    (run,) = json.loads(sarif(report))["runs"]
    return run["results"]


@pytest.mark.parametrize("report", [probed(), probed(environment()), hostile(), hostile(1 << 20)], ids=["nothing", "empty", "hostile", "long"])
def test_it_is_valid(report):
    Draft202012Validator(LOG).validate(json.loads(sarif(report)))


def test_an_outcome_is_a_rule_and_its_evidence_a_result_at_the_task():
    report = probed(environment(task("a", Outcome.EXPLOITABLE, Outcome.FLAKY)), files={("tasks", "a"): "my tasks/a/task.toml"})
    exploit, flaky = results(report)
    assert [(one["ruleId"], one["level"]) for one in (exploit, flaky)] == [("exploitable", "error"), ("flaky", "warning")]
    place = exploit["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "my%20tasks/a/task.toml", "uriBaseId": "%SRCROOT%"}, "region": {"startLine": 1}}
    assert exploit["properties"]["submitted"] == "pass"


def test_a_place_elsewhere_on_the_machine_is_a_whole_address():
    (one,) = results(probed(environment(task("a", Outcome.FLAKY)), files={("tasks", "a"): "/srv/a b/task.toml"}))
    assert one["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "file:///srv/a%20b/task.toml"}


def test_fingerprints_last_while_texts_change():
    one, other = (
        results(probed(environment(task("a", Outcome.FLAKY, evidence=[evidence(Outcome.FLAKY, claim=claim)]), version=version)))
        for claim, version in (("paid 3 of 5", "1"), ("paid 4 of 5", "2"))
    )
    assert one[0]["partialFingerprints"] == other[0]["partialFingerprints"]
    assert one[0]["message"] != other[0]["message"]


def test_what_a_baseline_knows_is_unchanged():
    report = probed(environment(task("a", Outcome.FLAKY)))
    again = Probed(report.environments, AT, baseline=Baseline(frozenset(report.known())))
    assert [one["baselineState"] for one in results(again)] == ["unchanged"]
    assert [one["baselineState"] for one in results(Probed(report.environments, AT, baseline=Baseline()))] == ["new"]


@pytest.mark.parametrize(("confirmed", "told"), [(None, 1), (True, 0), (False, 0)])
def test_only_a_hint_that_no_probe_tested_is_told(confirmed, told):
    hint = Hint(rule=GUESSED.rule, path=GUESSED.path, line=4, message=GUESSED.message, tested_by="exploit/x", confirmed=confirmed)
    found = results(probed(environment(task("a", Outcome.SOUND, hints=[hint])), files={("tasks", "a"): "tasks/a/task.toml"}))
    assert [one["level"] for one in found] == ["note"] * told
    for one in found:
        assert one["locations"][0]["physicalLocation"] == {
            "artifactLocation": {"uri": "tasks/a/tests/test.sh", "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": 4},
        }


def test_a_message_holds_no_link_no_placeholder_and_an_end():
    for report in (hostile(), hostile(1 << 20)):
        for one in results(report):
            text = one["message"]["text"]
            assert not UNSEEN & set(text)
            assert not re.search(r"\]\(", text)
            assert not re.search(r"(?<!\{)\{(\{\{)*\d", text)
            assert len(text) < 2 * MESSAGE


def test_hosts_get_the_gravest_and_are_told_what_was_left_out(monkeypatch):
    monkeypatch.setattr(module, "RESULTS", 50)
    flaky, grave = [task(f"flaky-{n}", Outcome.FLAKY) for n in range(50)], [task(f"grave-{n}", Outcome.EXPLOITABLE) for n in range(3)]
    said = []
    (run,) = json.loads(sarif(probed(environment(*flaky, *grave, hints=[GUESSED])), said.append))["runs"]
    rules = [one["ruleId"] for one in run["results"]]
    assert (len(rules), rules.count("exploitable"), rules.count("hint")) == (50, 3, 0)
    assert "4 of 54 results are left out, the least grave (3 flaky, 1 hint)" in said[0]
    assert [one["message"]["text"] for one in run["invocations"][0]["toolExecutionNotifications"]] == [one.removeprefix("SARIF: ") for one in said]


@pytest.mark.parametrize(("tasks", "kept"), [(800, 800), (5_000, None)], ids=["shorter", "fewer"])
def test_a_file_is_no_larger_than_hosts_take(tasks, kept):
    long = "A" * 15_000
    many = [task(f"{n}", Outcome.FLAKY, evidence=[evidence(Outcome.FLAKY, proof=long, detail="\n" * 500, claim=long[:1500])]) for n in range(tasks)]
    said = []
    text = sarif(probed(environment(*many)), said.append)
    results = json.loads(text)["runs"][0]["results"]
    assert len(text.encode()) <= 10_000_000
    assert "proofs are cut" in said[0]
    assert len(results) == kept or f"{tasks - len(results):,} of {tasks:,} results are left out" in said[1]


def test_what_fits_is_whole():
    said = []
    sarif(probed(environment(task("a", Outcome.FLAKY))), said.append)
    assert said == []
