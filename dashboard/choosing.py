"""Which line of a list a person looks at: the one that the page has, or another that the browser has named since."""

from __future__ import annotations

from typing import Any

import streamlit as st


def looked_at(key: str, shown: str | None) -> str | None:
    """The line looked at in the list mounted as `key`, for the script; `shown` is what the page has."""
    said = _said(key)
    return shown if said is None or said == st.session_state.get(_settled(key)) else str(said["key"])


def settle(key: str) -> None:
    """For the end of the script: its buttons now act on what the browser has named so far.

    Not sooner: the next key cuts a running script short, and its button may still hold the line before.
    """
    st.session_state[_settled(key)] = _said(key)


def taken(key: str, shown: str | None) -> str | None:
    """The line to act on, for the callback of a button that was made while the page had `shown`."""
    at = looked_at(key, shown)
    settle(key)
    return at


def _said(key: str) -> dict[str, Any] | None:
    state = st.session_state.get(key)
    return state.get("chosen") if state else None


def _settled(key: str) -> str:
    return f"settled-{key}"
