"""Sections of labelled facts, written as text whatever they hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import streamlit as st

from dashboard.shapes import Section

_HERE = Path(__file__).parent


def sheet(sections: Sequence[Section], *, key: str) -> None:
    """Mount it."""
    mount = st.components.v2.component(
        "inspector_sheet",
        html="<div class='ins-mount'></div>",
        css=(_HERE / "sheet.css").read_text(),
        js=(_HERE / "sheet.js").read_text(),
        isolate_styles=False,
    )
    mount(data={"sections": msgspec.to_builtins(list(sections))}, key=key)
