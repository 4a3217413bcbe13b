"""The transcript of one episode: findings on top, a search, and a virtual list of all steps, fetched by windows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import streamlit as st

from dashboard.shapes import ShownFinding

_HERE = Path(__file__).parent


def transcript(key: str, findings: Sequence[ShownFinding], step: int | None, *, above: int = 92) -> None:
    """Mount it for the trajectory `key`, at `step` where one is given; it fills the window but for `above` px."""
    data: dict[str, Any] = {
        "key": key,
        "findings": msgspec.to_builtins(list(findings)),
        "target": None if step is None else {"step": step},
        "above": above,
    }
    mount = st.components.v2.component(
        "inspector_transcript",
        html="<div class='ins-mount'></div>",
        css=(_HERE / "transcript.css").read_text(),
        js=(_HERE / "transcript.js").read_text(),
        isolate_styles=False,  # keys pressed in its fields must look to the page like keys pressed in fields
    )
    mount(data=data, key="transcript")
