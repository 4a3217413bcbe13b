"""What is said of a task whose outcomes differ between two versions."""

from __future__ import annotations

import pytest

from dashboard.wording import outcomes
from dashboard.wording.changes import KINDS, between, kind

SOUND = ["sound"]


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (SOUND, ["flaky"], "worse"),
        (["flaky"], ["flaky", "exploitable"], "worse"),
        (["flaky", "exploitable"], ["flaky"], "better"),
        (["exploitable"], SOUND, "better"),
        (["exploitable"], ["unsolvable"], "other faults"),
        (["exploitable"], ["not_assessed"], "unclear"),
        (["not_assessed"], ["exploitable"], "unclear"),
        (["not_assessed"], SOUND, "unclear"),
        (["inconclusive"], ["inconclusive"], "as before"),
        (["flaky", "exploitable"], ["exploitable", "flaky"], "as before"),
        (None, SOUND, "new"),
        (SOUND, None, "gone"),
    ],
)
def test_a_change_is_named_only_where_both_versions_could_be_told(before, now, said):
    assert kind(before, now) == said


def test_changes_need_a_look_in_the_order_of_their_kinds():
    def lines(**found):
        return [{"task": task, "outcomes": told} for task, told in found.items()]

    told = between(lines(a=SOUND, b=SOUND, c=["flaky"], d=SOUND, same=SOUND), lines(a=["flaky"], b=["exploitable"], c=SOUND, e=["not_assessed"], same=SOUND))
    assert [(change.task, change.kind) for change in told] == [
        ("b", "worse"), ("a", "worse"), ("e", "new"), ("c", "better"), ("d", "gone"), ("same", "as before"),
    ]  # fmt: skip
    assert {change.kind for change in told} <= set(KINDS)


def test_what_is_not_known_here_stands_before_what_is_sound_and_is_showable():
    assert sorted(["sound", "of a\u202e newer service", "not_assessed", "exploitable"], key=outcomes.gravity)[2] == "of a\u202e newer service"
    assert [chip.text for chip in outcomes.chips(["sound", "of a\u202e newer service"])] == ["of a\\u{202e} newer service", "sound"]
