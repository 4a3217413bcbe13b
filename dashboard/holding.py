"""Answers of the service that a person's page may show again for a moment, so that walking a list asks nothing anew."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import streamlit as st

FRESH_S = 20.0
MOST = 200


def held(name: str, ask: Callable[[], Any]) -> Any:
    """What `ask` answered under this name within the last `FRESH_S` seconds, or answers now."""
    kept: dict[str, tuple[float, Any]] = st.session_state.setdefault("held", {})
    at, answer = kept.get(name, (-math.inf, None))
    if time.monotonic() - at >= FRESH_S:
        answer = ask()
        if len(kept) >= MOST:
            kept.clear()
        kept[name] = (time.monotonic(), answer)
    return answer


def forget() -> None:
    """After an act, and when someone else signs in, everything is asked for anew."""
    st.session_state.pop("held", None)
