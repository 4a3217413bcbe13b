"""The frame of all pages: sign-in and navigation."""

import streamlit as st

from dashboard import panels, session

st.set_page_config(page_title="inspector", layout="wide")
session.api()
page = st.navigation(
    [
        st.Page(session.TRIAGE_PAGE, title="Triage", default=True),
        st.Page(session.EPISODE_PAGE, title="Episode"),
        st.Page(session.ENVIRONMENTS_PAGE, title="Environments"),
        st.Page(session.ENVIRONMENT_PAGE, title="Environment"),
    ],
    position="hidden",
)
panels.said()
page.run()
