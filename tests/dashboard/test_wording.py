"""What the pages say of counts, sizes and passages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.wording import reports, values
from dashboard.wording.findings import BLANK, QUOTE, QUOTE_LINES, quoted
from inspector.showable import showable


def counts(quarantine, flag, reviewed):
    return {"waiting": {"quarantine": quarantine, "flag": flag}, "reviewed_today": reviewed, "today": "2026-11-30T00:00:00Z", "most": 1_000}


@pytest.mark.parametrize(
    ("given_counts", "said"),
    [
        (counts(39, 27, 12), "66 waiting (39 quarantine, 27 flag) · 12 reviewed today"),
        (counts(0, 0, 0), "nothing waits · 0 reviewed today"),
        (counts(1_000, 7, 1_000), "1,007+ waiting (1,000+ quarantine, 7 flag) · 1,000+ reviewed today"),
    ],
)
def test_a_count_that_ended_early_says_so(given_counts, said):
    assert values.counted(given_counts) == said


def test_the_counts_say_what_they_count():
    said = values.counted_as(counts(1, 0, 0))
    assert "since 2026-11-30 00:00:00 UTC, each once" in said
    assert "without the filters" in said
    assert "ends at 1,000" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ""),
        ("rm -rf tests\n", "rm -rf tests"),
        ("\n\na\n\n  b\nc\n", "a\n  b\nc"),
        ("a\nb\nc\nd\ne", "a\nb\nc … [4 characters left out]"),
        ("x" * 400, "x" * QUOTE + " … [70 characters left out]"),
        (showable("x" * 600, limit=500), "x" * QUOTE + " … [270 characters left out]"),
        ("\u202eexe\x1b[31m", "\\u{202e}exe␛[31m"),
    ],
)
def test_a_passage_is_quoted_to_its_third_line_and_a_cut_is_told(text, said):
    assert quoted(text) == said


@given(st.text(st.sampled_from("ab\n\t\x1b\u202e\u2028 é"), max_size=1_000))
def test_a_quote_is_short_and_showable_whatever_it_quotes(text):
    said = quoted(text)
    assert said == showable(said, lines=True)
    assert said.count("\n") < QUOTE_LINES
    assert not text.strip(BLANK) or said


@pytest.mark.parametrize(
    ("standing", "told"),
    [
        ("dead", "0 of 30 paid (0% to 12%): never solved so far, which is no proof that it cannot be"),
        ("of_a_newer\u202e_service", "0 of 30 paid (0% to 12%): of a newer\\u{202e} service"),
    ],
)
def test_rollouts_stand_beside_the_outcomes_of_a_task(standing, told):
    found = {"scored": 30, "paid": 0, "standing": standing, "rate": 0.0, "low": 0.0, "high": 0.1157}
    line = {"task": "a", "outcomes": ["sound"], "probed_at": "2026-12-01T04:00:00Z", "rollouts": found}
    facts = {fact.label: fact.text for fact in reports.sections(line, None, None)[0].facts}
    assert facts["rollouts"] == told
    assert facts["outcomes"] == "sound"
