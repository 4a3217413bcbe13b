"""The page that a browser first gets of an episode: Streamlit's own, with the transcript begun before Streamlit's scripts run."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import streamlit
from starlette.requests import Request
from starlette.responses import HTMLResponse

from dashboard import assets

INDEX = Path(streamlit.__file__).parent / "static" / "index.html"
CONFIG = Path(__file__).parent / ".streamlit" / "config.toml"
FIRST = "transcript/first.js"
OWN = re.compile(r'<script type="module"[^>]*></script>|<link rel="modulepreload"[^>]*>')  # most of what a browser has to load and to compile
COLOURS = ("primary", "background", "secondary-background", "text", "link")


class Frame:
    """The route of the page of an episode."""

    def __init__(self) -> None:
        self._page = framed(INDEX.read_text())

    async def episode(self, request: Request) -> HTMLResponse:
        """The same for everyone: what is shown is asked for by the browser, with the person's own authority."""
        return HTMLResponse(self._page, headers={"Cache-Control": "no-cache"})


def framed(page: str) -> str:
    """Streamlit's page with our scripts at work and Streamlit's own put by, until `first.js` has them run."""
    own = OWN.findall(page)
    if not own:
        return page
    start = page.index(own[0])
    return page[:start] + f'<template id="ins-streamlit">{"".join(own)}</template>' + _ours() + OWN.sub("", page[start:])


def _ours() -> str:
    scripts = [name for name in assets.files() if name.startswith("transcript/") and name.endswith(".js") and name != FIRST]
    hints = "".join(f'<link rel="modulepreload" href="{assets.address(name)}">' for name in scripts)
    return (
        f"<script>{assets.text(FIRST)}</script>"
        f"<style>{_colours()}</style>"
        f'<link rel="stylesheet" href="{assets.address("transcript/transcript.css")}">{hints}'
        f'<script type="module" src="{assets.address("transcript/early.js")}"></script>'
    )


def _colours() -> str:
    """What Streamlit gives to its components later, from the same configuration."""
    theme = tomllib.loads(CONFIG.read_text())["theme"]
    light, dark = (";".join(f"--st-{name}-color:{theme[mode][_key(name)]}" for name in COLOURS) for mode in ("light", "dark"))
    fonts = '--st-font:"Source Sans",sans-serif;--st-code-font:"Source Code",monospace'
    return f".ins-early{{{light};{fonts}}}@media(prefers-color-scheme:dark){{.ins-early{{{dark}}}}}"


def _key(name: str) -> str:
    """As the configuration writes it: secondary-background is secondaryBackgroundColor."""
    first, *others = name.split("-")
    return first + "".join(word.title() for word in others) + "Color"
