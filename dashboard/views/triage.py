"""What waits for a person, worst first, with why it is here."""

from typing import Any

import streamlit as st

from dashboard import keys, panels, session
from dashboard.choosing import looked_at, settle, taken
from dashboard.components.queue import KEY, queue
from dashboard.wording import rows, values
from inspector.client.http import ApiError

PAGE = 25
VERDICTS = ("quarantine", "flag")

opened = session.api()


def from_the_start() -> None:
    """Another filter: the old place in the list means nothing."""
    st.query_params.pop("after", None)
    st.session_state.pop("chosen", None)
    settle(KEY)


def go_to(after: str | None) -> None:
    """Another page of the list."""
    from_the_start()
    if after:
        st.query_params["after"] = after


def chosen(shown: str | None) -> str | None:
    """What a person looks at as they press a key."""
    st.session_state["chosen"] = at = taken(KEY, shown)
    return at


def choose_next(judged: str) -> None:
    """After a judgement the next in the list is looked at."""
    listed = st.session_state.get("queue", [])
    at = listed.index(judged) if judged in listed else -1
    left = [key for key in listed[at + 1 :] + listed[: max(at, 0)] if key != judged]
    st.session_state["chosen"] = left[0] if left else None


def open_episode(shown: str) -> None:
    """Remembered, since the run that opens it may be cut short by the next key."""
    st.session_state["go"] = chosen(shown)


def filters() -> dict[str, str]:
    """As they stand in the address."""
    narrow = st.columns([1, 1.2, 2, 1.6], vertical_alignment="bottom")
    with narrow[0]:
        verdict = st.selectbox("Verdict", VERDICTS, index=None, placeholder="any", key="verdict", bind="query-params", on_change=from_the_start)
    with narrow[1]:
        cause = st.selectbox("Cause", panels.CAUSES, index=None, placeholder="any", key="cause", bind="query-params", on_change=from_the_start)
    with narrow[2]:
        environment = st.text_input("Environment version", key="environment", placeholder="team/name@version", bind="query-params", on_change=from_the_start)
    with narrow[3]:
        run = st.text_input("Run", key="run", placeholder="any", bind="query-params", on_change=from_the_start)
    return {name: value.strip() for name, value in (("verdict", verdict), ("cause", cause), ("environment", environment), ("run", run)) if value}


def asked(narrowed: dict[str, str]) -> dict[str, Any]:
    """The filters as the API takes them."""
    name, _, version = narrowed.get("environment", "").rpartition("@")
    return {**{k: v for k, v in narrowed.items() if k != "environment"}, **({"environment": name, "version": version} if name else {})}


def listed(narrowed: dict[str, str]) -> dict[str, Any]:
    """One page of the list; the page ends where the service refuses."""
    try:
        found: dict[str, Any] = opened.get("/v1/triage", limit=PAGE, after=st.query_params.get("after"), **asked(narrowed))
    except ApiError as error:
        session.stop(error)
    return found


def heading() -> None:
    """How many wait and were judged, and the ways elsewhere."""
    try:
        counts = opened.get("/v1/triage/counts")
    except ApiError as error:
        session.stop(error)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"##### Triage: {values.counted(counts)}", width="content", help=values.counted_as(counts))
        with st.container(horizontal=True, vertical_alignment="center", width="content"):
            if st.button("Environments", key="environments", shortcut=keys.TRIAGE["environments"], type="tertiary"):
                st.switch_page(session.ENVIRONMENTS_PAGE, query_params={})
            if st.button("Find by id", key="find", shortcut=keys.TRIAGE["find"], type="tertiary"):
                st.switch_page(session.EPISODE_PAGE, query_params={})
            panels.account(opened, keys.TRIAGE, keys.IN_QUEUE)


def nothing(more: bool, narrowed: dict[str, str]) -> str:
    """Why the list is empty."""
    if more:
        return "Nothing on this stretch of the list matches the filters; the next page looks further."
    if narrowed:
        return "Nothing that waits matches the filters."
    return "Nothing waits for a person. What checks flag or quarantine from now on appears here."


def clear() -> None:
    """Without filters, from the start."""
    from_the_start()
    for name, none in (("verdict", None), ("cause", None), ("environment", ""), ("run", "")):
        st.session_state[name] = none


def told_of(page: dict[str, Any], narrowed: dict[str, str]) -> str:
    """What of the list is on this page."""
    looked = f" of {page['scanned']:,} looked at" if narrowed else ""
    return f"{len(page['trajectories'])}{looked} on this page, worst first{', more follow' if page['next'] else ''} · J K move · O opens"


def below(line: dict[str, Any] | None, page: dict[str, Any]) -> None:
    """What may be done about the chosen one, and the other pages."""
    if line is None:
        st.button("Show all that waits", key="all", shortcut=keys.TRIAGE["all"], on_click=clear)
    else:
        st.caption(told_of(page, narrowed))
    acts, pages = st.columns([3, 1.3], vertical_alignment="bottom")
    if line is not None:
        with acts:
            panels.judge(opened, line, None, choose_next, which=chosen, beside=True)
    with pages, st.container(horizontal=True, horizontal_alignment="right", gap="small"):
        if line is not None:
            st.button("Open", key="open", shortcut=keys.TRIAGE["open"], on_click=open_episode, args=(line["key"],))
        if st.query_params.get("after"):
            st.button("First page", key="first page", shortcut=keys.TRIAGE["first page"], on_click=go_to, args=(None,))
        if page["next"]:
            st.button("Next page", key="next page", shortcut=keys.TRIAGE["next page"], on_click=go_to, args=(page["next"],))


heading()
narrowed = filters()
st.session_state["narrowed"] = narrowed  # for the way back: an address may not be given what fields of this page are bound to
if go := st.session_state.pop("go", None):
    st.switch_page(session.EPISODE_PAGE, query_params={"key": go})
if narrowed.get("environment") and "@" not in narrowed["environment"]:
    st.info("An environment is named with its version: team/name@version.")
    st.stop()
page = listed(narrowed)
lines = page["trajectories"]
st.session_state["queue"] = [line["key"] for line in lines]
at = looked_at(KEY, st.session_state.get("chosen"))
if at not in st.session_state["queue"]:
    at = lines[0]["key"] if lines else None
st.session_state["chosen"] = at
queue([rows.row(line, narrowed) for line in lines], at, nothing(page["next"] is not None, narrowed))
if lines or narrowed or st.query_params.get("after"):
    below(next((line for line in lines if line["key"] == at), None), page)
settle(KEY)
