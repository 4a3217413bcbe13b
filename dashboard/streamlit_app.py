"""The frame of all pages: sign-in, navigation, and who is looking."""

import streamlit as st

from dashboard import panels, session
from inspector.showable import showable

st.set_page_config(page_title="inspector", page_icon=":material/policy:", layout="wide", initial_sidebar_state="collapsed")
opened = session.api()
who = session.person(opened)
page = st.navigation(
    [
        st.Page(session.TRIAGE_PAGE, title="Triage", icon=":material/inbox:", default=True),
        st.Page(session.EPISODE_PAGE, title="Episode", icon=":material/article:"),
    ],
    position="top",
)
with st.sidebar:
    st.text(f"{showable(who['name'])}\n{who['role']} of {showable(who['project'] or 'the installation')}")
    st.button("Sign out", key="sign-out", on_click=session.sign_out, args=(opened,))
panels.said()
page.run()
