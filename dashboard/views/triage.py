"""What waits for a person, worst first, with why it is here."""

from typing import Any

import streamlit as st

from dashboard import keys, panels, session, wording
from dashboard.components.queue import queue, told
from inspector.client.http import ApiError

PAGE = 25
VERDICTS = ("quarantine", "flag")
CAUSES = ("policy_exploit", "verifier_defect", "environment_defect", "infrastructure", "record_defect", "anomaly")

opened = session.api()


def from_the_start() -> None:
    """Another filter: the old place in the list means nothing."""
    st.query_params.pop("after", None)
    st.session_state.pop("chosen", None)


def go_to(after: str | None) -> None:
    """Another page of the list."""
    from_the_start()
    if after:
        st.query_params["after"] = after


def chosen(shown: str | None) -> str | None:
    """What a person looks at: `shown`, as the page has it, unless the browser has said since that they moved on."""
    said = told()
    if said is not None and said != st.session_state.get("said-chosen"):
        st.session_state["said-chosen"] = st.session_state["chosen"] = shown = said
    return shown


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
    narrow = st.columns([1.1, 1.4, 2, 1.6, 1.2], vertical_alignment="bottom")
    with narrow[0]:
        verdict = st.selectbox("Verdict", VERDICTS, index=None, placeholder="any", key="verdict", bind="query-params", on_change=from_the_start)
    with narrow[1]:
        cause = st.selectbox("Cause", CAUSES, index=None, placeholder="any", key="cause", bind="query-params", on_change=from_the_start)
    with narrow[2]:
        environment = st.text_input("Environment version", key="environment", placeholder="team/name@version", bind="query-params", on_change=from_the_start)
    with narrow[3]:
        run = st.text_input("Run", key="run", placeholder="any", bind="query-params", on_change=from_the_start)
    with narrow[4]:
        panels.account(opened, keys.TRIAGE, keys.IN_QUEUE)
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


def heading(shown: int, scanned: int, more: bool, narrowed: dict[str, str]) -> None:
    """How many wait, and what of them is here."""
    try:
        counts = opened.get("/v1/triage/counts")
    except ApiError as error:
        session.stop(error)
    beyond = f", {scanned:,} looked at" if narrowed else ""
    st.caption(f"**{wording.counted(counts['waiting'], counts['most'])}** · {shown} on this page{beyond}{', more follow' if more else ''}")


narrowed = filters()
if go := st.session_state.pop("go", None):
    st.switch_page(session.EPISODE_PAGE, query_params={"key": go, **narrowed})
if narrowed.get("environment") and "@" not in narrowed["environment"]:
    st.info("An environment is named with its version: team/name@version.")
    st.stop()
page = listed(narrowed)
lines = page["trajectories"]
heading(len(lines), page["scanned"], page["next"] is not None, narrowed)
st.session_state["queue"] = [line["key"] for line in lines]
if not lines:
    st.write("Nothing here waits for a person." if page["next"] is None else "Nothing on this stretch of the list; the next page looks further.")
at = chosen(st.session_state.get("chosen"))
if at not in st.session_state["queue"]:
    at = lines[0]["key"] if lines else None
    st.session_state["chosen"] = at
if lines:
    queue([wording.queue_row(line, narrowed) for line in lines], at)
line = next((line for line in lines if line["key"] == at), None)
below = st.columns([3, 2], vertical_alignment="bottom")
if line is not None:
    with below[0]:
        st.text(f"{wording.shown(line['id'])} — {line['verdict']}, {wording.decided(line)}")
        panels.judge(opened, line, None, choose_next, which=chosen)
with below[1], st.container(horizontal=True, horizontal_alignment="right"):
    if line is not None:
        st.button("Open", key="open", shortcut=keys.TRIAGE["open"], on_click=open_episode, args=(line["key"],))
    if st.query_params.get("after"):
        st.button("First page", key="first page", shortcut=keys.TRIAGE["first page"], on_click=go_to, args=(None,))
    if page["next"]:
        st.button("Next page", key="next page", shortcut=keys.TRIAGE["next page"], on_click=go_to, args=(page["next"],))
