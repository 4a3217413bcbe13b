"""The server of the dashboard: `uvicorn dashboard.asgi:app`."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

app = st.App(Path(__file__).parent / "streamlit_app.py")
