"""The list of what waits for a person, worst first; j and k move through it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import streamlit as st

from dashboard import assets
from dashboard.shapes import QueueRow

KEY = "list"


def queue(rows: Sequence[QueueRow], chosen: str | None, empty: str = "") -> None:
    """Mount it with `chosen` marked; without rows it says `empty`."""
    mount = st.components.v2.component(
        "inspector_queue",
        html="<div class='ins-mount'></div>",
        css=assets.text("queue/queue.css"),
        js=assets.script("queue/queue.js"),
        isolate_styles=False,
    )
    mount(data={"rows": msgspec.to_builtins(list(rows)), "chosen": chosen, "empty": empty}, key=KEY, on_chosen_change=lambda: None)
