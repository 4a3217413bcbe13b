"""The list of what waits for a person, worst first; j and k move through it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import streamlit as st

from dashboard.shapes import QueueRow

_HERE = Path(__file__).parent


def queue(rows: Sequence[QueueRow], chosen: str | None) -> str | None:
    """Mount it; the key that a person has just chosen."""
    mount = st.components.v2.component(
        "inspector_queue",
        html="<div class='ins-mount'></div>",
        css=(_HERE / "queue.css").read_text(),
        js=(_HERE / "queue.js").read_text(),
        isolate_styles=False,
    )
    told = mount(data={"rows": msgspec.to_builtins(list(rows)), "chosen": chosen}, key="queue", on_chosen_change=lambda: None)
    return told.chosen  # type: ignore[no-any-return]
