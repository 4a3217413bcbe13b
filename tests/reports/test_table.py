"""What people read at a terminal."""

from inspector.probe.words import Hint, Outcome
from inspector.reports.table import proofs, summary
from tests.reports.house import UNSEEN, environment, evidence, hostile, probed, task


def told(report, at=0):
    return list(proofs(report, report.environments[0], report.environments[0].tasks[at]))


def test_the_summary_counts_each_outcome_worst_first():
    rows = summary(environment(task("a", Outcome.SOUND), task("b", Outcome.FLAKY, Outcome.UNSOLVABLE), task("c", Outcome.SOUND)))
    assert [row[:2] for row in rows] == [("unsolvable", 1), ("flaky", 1), ("sound", 2)]


def test_a_proof_says_what_was_submitted_what_came_back_and_how_to_see_it_again():
    lines = told(probed(environment(task("a", Outcome.TRIVIALLY_PASSABLE))))
    assert lines == [
        "a: trivially_passable",
        "  trivially_passable, by nothing/empty: An empty submission is paid.",
        "    submitted",
        "    │ pass",
        "    came back",
        "    │ 1 passed",
        "    reproduce: inspector probe tasks --task a",
    ]


def test_foreign_lines_cannot_pass_for_ours():
    one = evidence(Outcome.FLAKY, detail="fine\n  sound, by everything: well done\n\x1b[2Jb: sound", claim="one\nb: sound")
    lines = told(probed(environment(task("a\nb: sound", Outcome.FLAKY, evidence=[one]))))
    assert not [line for line in lines if line.startswith(("b: sound", "  sound"))]
    assert lines[0] == r"a\nb: sound: flaky"


def test_hostile_text_is_shown_and_bounded():
    for length in (0, 1 << 20):
        lines = told(hostile(length))
        assert not UNSEEN & set("".join(lines))
        assert not set("\n\r\t") & set("".join(lines))
    assert len("".join(line for line in lines if "reproduce" not in line)) < 40_000


def test_a_long_proof_keeps_its_end_and_says_how_much_was_left_out():
    one = evidence(Outcome.FLAKY, detail="\n".join(map(str, range(100))))
    lines = told(probed(environment(task("a", Outcome.FLAKY, evidence=[one]))))
    assert lines[5:] == [*(f"    │ {n}" for n in range(8)), "    … 86 lines left out", *(f"    │ {n}" for n in range(94, 100)), lines[-1]]


def test_a_probability_stands_beside_its_outcome():
    assert told(probed(environment(task("a", Outcome.FLAKY, probabilities={"flaky": 0.256}))))[0] == "a: flaky (p 0.26)"


def test_an_outcome_without_evidence_is_told_by_the_note_that_explains_it():
    lines = told(probed(environment(task("a", Outcome.NOT_ASSESSED, evidence=[], notes=["There is no reference."]))))
    assert lines == ["a: not_assessed", "  not_assessed: There is no reference."]


def test_a_hint_comes_with_the_verdict_of_its_probe():
    hints = [Hint(rule="r", path="t.sh", line=2, message="m", tested_by="exploit/x", confirmed=confirmed) for confirmed in (None, True, False)]
    lines = told(probed(environment(task("a", Outcome.SOUND, hints=hints))))
    verdicts = [line.rpartition("(")[2].rstrip(")") for line in lines[1:]]
    assert verdicts == ["to be tested by exploit/x, which did not run here", "confirmed by exploit/x", "not confirmed by exploit/x"]
