"""The list of what waits for a person, worst first; j and k move through it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import streamlit as st

from dashboard.shapes import QueueRow

_HERE = Path(__file__).parent


KEY = "list"


def told() -> str | None:
    """The key that a person last chose, as the browser said it; callbacks may ask too."""
    state = st.session_state.get(KEY)
    return state.get("chosen") if state else None


def queue(rows: Sequence[QueueRow], chosen: str | None) -> None:
    """Mount it with `chosen` marked."""
    mount = st.components.v2.component(
        "inspector_queue",
        html="<div class='ins-mount'></div>",
        css=(_HERE / "queue.css").read_text(),
        js=(_HERE / "queue.js").read_text(),
        isolate_styles=False,
    )
    mount(data={"rows": msgspec.to_builtins(list(rows)), "chosen": chosen}, key=KEY, on_chosen_change=lambda: None)
