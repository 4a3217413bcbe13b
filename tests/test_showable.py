"""What foreign text may do to a terminal, a log, a spreadsheet or a page once it is showable: nothing."""

import subprocess
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.showable import csv_cell, shell_word, showable

ANYTHING = st.text(st.characters(exclude_categories=()))
DANGEROUS = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("a\x00b\x07c\x7fd\x9be", "a\\u{0}b\\u{7}c\\u{7f}d\\u{9b}e"),
        ("abc\u202edcba\u202c", "abc\\u{202e}dcba\\u{202c}"),
        ("\u2066x\u2069\u200e\u200f\u061c", "\\u{2066}x\\u{2069}\\u{200e}\\u{200f}\\u{61c}"),
        ("pass\u200bword\ufeff\u2060\u200d", "pass\\u{200b}word\\u{feff}\\u{2060}\\u{200d}"),
        ("hi\U000e0041\U000e007f", "hi\\u{e0041}\\u{e007f}"),
        ("\ud800 \ue000 \U000f0000 \u0378", "\\u{d800} \\u{e000} \\u{f0000} \\u{378}"),
        ("x\U000e0100\u3164\u034f", "x\\u{e0100}\\u{3164}\\u{34f}"),
        ("one\ntwo\ttab\rback\u2028\u2029", "one\\ntwo\\ttab\\rback\\u{2028}\\u{2029}"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text, shown):
    assert showable(text) == shown


@pytest.mark.parametrize(
    "text", ["", "plain", "Grüße, 世界　は, مرحبا, שלום, हिन्दी, ภาษาไทย", "😀 ❤️ 👍🏽 🇩🇪", "1\u00a0000 €", "\\u{202e} as typed", "<b>&amp;"]
)
def test_plain_text_of_any_script_is_unchanged(text):
    assert showable(text) == text


def test_lines_keep_line_feeds_and_tabs_only():
    assert showable("a\n\tb\r\n\x1b[0m", lines=True) == "a\n\tb\\r\n␛[0m"
    assert showable("a\n\tb 世界", lines=True) == "a\n\tb 世界"


def test_a_cut_says_how_much_it_left_out():
    assert showable("x" * 12, limit=10) == "xxxxxxxxxx… [2 characters left out]"
    assert showable("x" * 10, limit=10) == "x" * 10
    assert showable("\x00\x00", limit=1) == "\\u{0}… [1 characters left out]"


@given(ANYTHING, st.booleans())
def test_nothing_dangerous_is_left_and_twice_is_once(text, lines):
    shown = showable(text, lines=lines)
    assert not {unicodedata.category(char) for char in shown if not (lines and char in "\n\t")} & DANGEROUS
    assert showable(shown, lines=lines) == shown
    shown.encode()


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "  =1+1", '"=1', "＝1"])
def test_no_cell_is_run_as_a_formula(text):
    assert csv_cell(text) == "'" + text


@pytest.mark.parametrize(("text", "cell"), [("plain", "plain"), ("a=b", "a=b"), ("\t=1", "\\t=1"), ("\r=1", "\\r=1"), ("'=1", "'=1")])
def test_other_cells_are_only_made_showable(text, cell):
    assert csv_cell(text) == cell


@given(ANYTHING)
def test_a_cell_never_starts_a_formula(text):
    cell = csv_cell(text)
    assert not cell.lstrip().startswith(("=", "+", "-", "@"))
    assert csv_cell(cell) == cell


@pytest.mark.parametrize("text", ["a", "", "it's", "-x", "$(id) `id` !!", "ä 日", "\x1b[2J", "a\nb\\n'c'", "\u202e'\\x41", "\udcff", "\x01A\x7f"])
def test_a_pasted_word_is_the_same_text_and_shows_itself(text):
    word = shell_word(text)
    assert showable(word) == word
    told = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, timeout=10).stdout
    assert told.decode(errors="surrogateescape") == text
