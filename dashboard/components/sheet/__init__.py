"""Sections of labelled facts, written as text whatever they hold."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import streamlit as st

from dashboard import assets
from dashboard.shapes import Section


def sheet(sections: Sequence[Section], *, key: str) -> None:
    """Mount it."""
    mount = st.components.v2.component(
        "inspector_sheet",
        html="<div class='ins-mount'></div>",
        css=assets.text("sheet/sheet.css"),
        js=assets.script("sheet/sheet.js"),
        isolate_styles=False,
    )
    mount(data={"sections": msgspec.to_builtins(list(sections))}, key=key)
