"""What a CI server is given."""

from xml.etree import ElementTree

import pytest

from inspector.probe.words import Outcome
from inspector.reports.baseline import Baseline
from inspector.reports.junit import junit
from inspector.reports.probed import Probed
from tests.reports.house import AT, UNSEEN, environment, evidence, hostile, probed, task


def cases(report):
    return {case.get("name"): case for case in ElementTree.fromstring(junit(report).encode()).iter("testcase")}


def verdict(case):
    return next((child.tag for child in case if child.tag != "system-out"), None)


@pytest.mark.parametrize("outcome", list(Outcome))
def test_a_defect_fails_and_what_was_not_judged_is_skipped(outcome):
    skipped = {Outcome.NOT_ASSESSED, Outcome.NOT_REPRODUCED, Outcome.INCONCLUSIVE}
    expected = None if outcome is Outcome.SOUND else "skipped" if outcome in skipped else "failure"
    assert verdict(cases(probed(environment(task("a", outcome))))["a"]) == expected


def test_it_fails_by_what_was_asked_for():
    report = probed(environment(task("a", Outcome.FLAKY), task("b", Outcome.NOT_ASSESSED)), failing=frozenset({Outcome.NOT_ASSESSED}))
    assert {name: verdict(case) for name, case in cases(report).items()} == {"a": None, "b": "failure"}


def test_what_is_known_passes_and_is_told():
    report = probed(environment(task("a", Outcome.FLAKY)))
    again = Probed(report.environments, AT, baseline=Baseline(frozenset(report.known())))
    (case,) = cases(again).values()
    assert verdict(case) is None
    assert case.findtext("system-out").startswith("known: flaky")


def test_the_suite_counts_its_cases():
    report = probed(environment(task("a", Outcome.FLAKY), task("b", Outcome.SOUND), task("c", Outcome.INCONCLUSIVE)))
    (suite,) = ElementTree.fromstring(junit(report).encode())
    assert {name: suite.get(name) for name in ("tests", "failures", "skipped", "errors", "time")} == {
        "tests": "3", "failures": "1", "skipped": "1", "errors": "0", "time": "3.000"
    }  # fmt: skip


def test_a_failure_holds_the_whole_proof():
    one = evidence(Outcome.EXPLOITABLE, "exploit/a", proof="rm -r tests", detail="1 passed\n2 < 3", also=["exploit/b"])
    text = cases(probed(environment(task("a", Outcome.EXPLOITABLE, evidence=[one]))))["a"].findtext("failure")
    for part in ("by exploit/a", "rm -r tests", "1 passed\n2 < 3", "the same cause: exploit/b", "reproduce: inspector probe"):
        assert part in text


@pytest.mark.parametrize("length", [0, 1 << 20])
def test_hostile_text_stays_text(length):
    written = junit(hostile(length))
    assert not UNSEEN & set(written)
    assert {element.tag for element in ElementTree.fromstring(written.encode()).iter()} == {
        "testsuites", "testsuite", "properties", "property", "testcase", "failure", "skipped", "system-out"
    }  # fmt: skip
    assert len(written) < 1 << 20
