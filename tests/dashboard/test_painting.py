"""Spans still mark what they marked once a text is made showable."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.painting import paint, place, units
from dashboard.steps import COLLAPSED_ABOVE, HEAD, head_of, shown
from inspector.showable import showable

hostile = st.text(st.sampled_from("ab\n\t\x1b\u202e\u200b\ufe0f\ufe0e😀é中\ud800\x00<&"), max_size=30) | st.text(max_size=40)


def between(painted, start, end):
    """What the browser marks: UTF-16 units of the shown text."""
    wide = painted.text.encode("utf-16-le", "surrogatepass")
    return wide[2 * place(painted.pieces, start) : 2 * place(painted.pieces, end)].decode("utf-16-le", "surrogatepass")


@given(hostile)
def test_every_character_is_found_where_it_went(text):
    painted = paint(text)
    assert painted.text == showable(text, lines=True)
    assert place(painted.pieces, len(text)) == units(painted.text)
    for at, char in enumerate(text):
        assert between(painted, at, at + 1) in (char, showable(char, lines=True), f"\\u{{{ord(char):x}}}")


@given(hostile, st.text("abc", min_size=1, max_size=5), hostile)
def test_a_span_behind_hostile_characters_marks_the_same_text(before, evidence, after):
    assert between(paint(before + evidence + after), len(before), len(before) + len(evidence)) == evidence


def test_ordinary_text_needs_no_map():
    assert paint("wörter and\n\tlines 中文").pieces == ()


@pytest.mark.parametrize(
    ("text", "head"),
    [("x" * COLLAPSED_ABOVE, COLLAPSED_ABOVE), ("x" * (COLLAPSED_ABOVE + 1), HEAD), ("a\n" * 500, 79), ("", 0)],
)
def test_a_long_text_is_folded_and_its_length_told(text, head):
    assert head_of(text) == head
    step = shown(0, json.dumps({"source": "user", "message": text}).encode())
    assert [(b.head, b.length) for b in step.blocks] == [(head, len(text))]
    assert shown(0, json.dumps({"source": "user", "message": text}).encode(), "message").blocks[0].text == text


@pytest.mark.parametrize(
    "raw", [b"3", b'"text"', b"{}", b'{"tool_calls": 3, "observation": [1]}', b'{"message": "\\ud800"}', b'{"source": [], "message": 1e999}', b"[" * 3000]
)
def test_a_step_of_any_shape_is_shown(raw):
    assert shown(7, raw).at == 7
