"""Only what is new fails."""

import pytest

from inspector.probe.words import Outcome
from inspector.reports.baseline import BadBaseline, Baseline, Known, baseline_text, read_baseline
from inspector.reports.probed import Probed
from tests.reports.house import AT, environment, evidence, hostile, probed, task


def exploitable(*also, probe="exploit/a"):
    return task("a", Outcome.EXPLOITABLE, evidence=[evidence(Outcome.EXPLOITABLE, probe, also=also)])


def after(report, *tasks, name="tasks"):
    return Probed((environment(*tasks, name=name),), AT, baseline=Baseline(frozenset(report.known())))


@pytest.mark.parametrize(
    ("before", "now", "new"),
    [
        ([], [exploitable()], {Outcome.EXPLOITABLE}),
        ([exploitable()], [exploitable()], set()),
        ([exploitable()], [exploitable(probe="exploit/b")], {Outcome.EXPLOITABLE}),
        ([exploitable("exploit/b")], [exploitable("exploit/a", probe="exploit/b")], set()),
        ([task("a", Outcome.WEAK_VERIFIER)], [exploitable()], {Outcome.EXPLOITABLE}),
        ([task("b", Outcome.EXPLOITABLE)], [task("a", Outcome.EXPLOITABLE)], {Outcome.EXPLOITABLE}),
        ([task("a", Outcome.NOT_ASSESSED)], [task("a", Outcome.NOT_ASSESSED, notes=["another reason"])], set()),
        ([exploitable()], [task("a", Outcome.SOUND)], {Outcome.SOUND}),
    ],
)
def test_what_is_new(before, now, new):
    assert after(probed(environment(*before)), *now).new() == new


def test_another_environment_is_not_known():
    assert after(probed(environment(exploitable())), exploitable(), name="others").new() == {Outcome.EXPLOITABLE}


def test_it_comes_back_as_it_was_written(tmp_path):
    for report in (probed(), probed(environment(exploitable("exploit/b"))), hostile()):
        file = tmp_path / "known.json"
        file.write_text(baseline_text(report.known()), encoding="utf-8")
        assert read_baseline(file).known == report.known()


def test_it_is_written_in_one_order():
    some = [Known("e", task, Outcome.FLAKY, "p") for task in "bca"]
    assert baseline_text(some) == baseline_text(sorted(some)) == baseline_text(some * 2)
    assert baseline_text(some).count("\n") == 5


def test_it_keeps_what_was_known_of_tasks_that_were_not_probed_and_forgets_what_was_mended():
    report = probed(environment(task("a", Outcome.FLAKY), task("b", Outcome.FLAKY)))
    assert {one.task for one in after(report, task("a", Outcome.SOUND)).known()} == {"b"}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"version": 2, "known": []}', '{"version": 1}', '{"version": 1, "known": [{"task": "a"}]}', '{"version": 1, "known": [], "x": 1}',
     '{"version": 1, "known": [{"environment": "e", "task": "t", "outcome": "bad", "probe": "p"}]}', "[" * 100_000, "\udcff"],
)  # fmt: skip
def test_a_bad_one_is_named(text, tmp_path):
    file = tmp_path / "known.json"
    file.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(BadBaseline, match=r"known\.json"):
        read_baseline(file)


def test_one_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BadBaseline, match=r"known\.json"):
        read_baseline(tmp_path / "known.json")
