"""A list of lines in columns, of which one is chosen; j and k move through it."""

from __future__ import annotations

import msgspec
import streamlit as st

from dashboard import assets
from dashboard.shapes import Listing


def listing(listed: Listing, chosen: str | None, *, key: str) -> None:
    """Mount it with the line `chosen` marked."""
    mount = st.components.v2.component(
        "inspector_listing",
        html="<div class='ins-mount'></div>",
        css=assets.text("listing/listing.css"),
        js=assets.script("listing/listing.js"),
        isolate_styles=False,
    )
    mount(data={"listed": msgspec.to_builtins(listed), "chosen": chosen}, key=key, on_chosen_change=lambda: None)
