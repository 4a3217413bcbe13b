"""The pages of the dashboard."""

import streamlit as st

st.set_page_config(page_title="inspector", layout="wide")
st.title("inspector")
