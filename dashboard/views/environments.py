"""Environment versions: how they stand, what probes said of their tasks, and when."""

from typing import Any

import streamlit as st

from dashboard import holding, keys, panels, probed, session
from dashboard.choosing import looked_at, settle, taken
from dashboard.components.listing import listing
from dashboard.shapes import Cell, Listing
from dashboard.wording import versions
from inspector.client.http import ApiError

PAGE = 20
KEY = "versions"
HEADS = ["state", "environment version", "outcomes of its tasks", "newest probe", ""]

opened = session.api()


def go_to(after: str | None) -> None:
    """Another page of the list."""
    settle(KEY)
    st.session_state.pop("version-chosen", None)
    st.query_params.pop("after", None)
    if after:
        st.query_params["after"] = after


def open_version(shown: str) -> None:
    """Remembered until the page of the version is there: what the browser says late of the key before brings this page back."""
    st.session_state["go-version"] = taken(KEY, shown)


def listed() -> dict[str, Any]:
    """One page of the list; the page ends where the service refuses."""
    after = st.query_params.get("after")
    try:
        found: dict[str, Any] = holding.held(f"environments {after}", lambda: opened.get("/v1/environments", limit=PAGE, after=after))
    except ApiError as error:
        session.stop(error)
    return found


def newest() -> dict[tuple[str, str], Any]:
    """The newest probes of the project, by version."""
    try:
        return probed.newest(opened)
    except ApiError as error:
        session.stop(error)


def heading() -> None:
    """What this is, and the ways elsewhere."""
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown("##### Environments", width="content")
        with st.container(horizontal=True, vertical_alignment="center", width="content"):
            if st.button("← Triage", key="triage", shortcut=keys.ENVIRONMENTS["triage"], type="tertiary"):
                st.switch_page(session.TRIAGE_PAGE, query_params=st.session_state.get("narrowed", {}))
            st.button("Look again", key="look again", shortcut=keys.ENVIRONMENTS["look again"], type="tertiary", on_click=holding.forget)
            panels.account(opened, keys.ENVIRONMENTS, keys.IN_QUEUE)


def below(at: str | None, found: dict[str, Any]) -> None:
    """What may be done about the chosen one, and the other pages."""
    more = ", more follow" if found["next"] else ""
    said, ways = st.columns([1.6, 1], vertical_alignment="center")
    said.caption(f"{len(found['environments'])} on this page, in the order in which they came to the project{more} · J K move · O opens")
    with ways, st.container(horizontal=True, horizontal_alignment="right", gap="small"):
        if at is not None:
            st.button("Open", key="open version", shortcut=keys.ENVIRONMENTS["open version"], on_click=open_version, args=(at,))
        if st.query_params.get("after"):
            st.button("First page", key="first page", shortcut=keys.ENVIRONMENTS["first page"], on_click=go_to, args=(None,))
        if found["next"]:
            st.button("Next page", key="next page", shortcut=keys.ENVIRONMENTS["next page"], on_click=go_to, args=(found["next"],))


heading()
page = listed()
lines = {versions.place(line): line for line in page["environments"]}
at = looked_at(KEY, st.session_state.get("go-version") or st.session_state.get("version-chosen"))
if at not in lines:
    st.session_state.pop("go-version", None)
    at = next(iter(lines), None)
st.session_state["version-chosen"] = at
if at and "go-version" in st.session_state:
    st.switch_page(session.ENVIRONMENT_PAGE, query_params=versions.parameters(lines[at]))
probes = newest()
rows = [versions.row(line, probes.get((line["environment"], line["version"]))) for line in lines.values()]
empty = "No environment version was posted or declared here.\nRegister one: inspector environments register PATH --name team/name --version V"
listing(Listing("versions", Cell(), HEADS, rows, empty), at, key=KEY)
if rows or st.query_params.get("after"):
    below(at, page)
settle(KEY)
