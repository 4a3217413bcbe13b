"""Which line a key acts on, when the browser moves on faster than the page is made anew."""

from __future__ import annotations

import pytest
import streamlit as st

from dashboard.choosing import looked_at, settle, taken


@pytest.fixture
def moved():
    """The browser says that a person went to another line."""
    st.session_state.clear()
    at = iter(range(100))
    yield lambda line: st.session_state.update(rows={"chosen": {"key": line, "at": next(at)}})
    st.session_state.clear()


def test_the_page_says_which_until_the_browser_does(moved):
    assert looked_at("rows", "first") == "first"
    assert taken("rows", None) is None
    moved("second")
    assert looked_at("rows", "first") == "second"


def test_a_key_after_a_script_that_was_cut_short_acts_on_the_line_looked_at(moved):
    moved("second")
    assert looked_at("rows", "first") == "second"  # the script that another key stops before its buttons know
    assert taken("rows", "first") == "second"


def test_what_the_service_moves_to_is_not_taken_back_by_what_was_said_before(moved):
    moved("second")
    assert taken("rows", "first") == "second"
    assert looked_at("rows", "third") == "third"
    moved("fourth")
    settle("rows")
    assert looked_at("rows", "third") == "third"


def test_a_line_named_again_is_news(moved):
    moved("second")
    settle("rows")
    moved("second")
    assert looked_at("rows", "first") == "second"
