"""The transcript of one episode: findings on top, a search, and a virtual list of all steps, fetched by windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import streamlit as st

from dashboard import assets
from dashboard.shapes import ShownFinding, Title


def transcript(key: str, title: Title, findings: Sequence[ShownFinding], step: int | None, size: str, following: str | None) -> None:
    """Mount it for the trajectory `key` of that `size`, at `step` where one is given; the browser asks ahead for `following`."""
    data: dict[str, Any] = {
        "key": key,
        "title": msgspec.to_builtins(title),
        "findings": msgspec.to_builtins(list(findings)),
        "target": None if step is None else {"step": step},
        "size": size,
        "next": following,
    }
    mount = st.components.v2.component(
        "inspector_transcript",
        html="<div class='ins-mount'></div>",
        css=assets.text("transcript/transcript.css"),
        js=assets.script("transcript/main.js"),
        isolate_styles=False,  # keys pressed in its fields must look to the page like keys pressed in fields
    )
    mount(data=data, key="transcript")
