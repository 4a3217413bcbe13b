"""One episode: what happened, what was found, what was decided, and a person's judgement of it."""

from typing import Any
from uuid import UUID

import streamlit as st

from dashboard import keys, panels, session
from dashboard.components.sheet import sheet
from dashboard.components.transcript import transcript
from dashboard.shapes import Section
from dashboard.wording import coverage, facts, findings, values, versions
from dashboard.wording.reach import Reach
from dashboard.wording.reach import facts as reach_facts
from inspector.client.http import ApiError

REPORTS = 20  # of updates after the episode's own step that are looked through for it
MEMBERS = 64
FILTERS = ("verdict", "cause", "environment", "run")

opened = session.api()


def find() -> None:
    """Look up the key or the producer's id that a person types."""
    to_triage()
    given = st.text_input("Episode", placeholder="the key or the producer's id of a trajectory, then Enter", key="wanted").strip()
    if not given:
        return
    try:
        found = opened.trajectory(str(UUID(given))) if _is_key(given) else opened.trajectory_by_id(given)
    except ApiError as error:
        session.stop(error)
    st.query_params["key"] = str(found["summary"]["key"])
    st.rerun()


def _is_key(text: str) -> bool:
    try:
        return bool(UUID(text))
    except ValueError:
        return False


def step() -> int | None:
    """The position in the address, if there is one."""
    text = st.query_params.get("step", "")
    return int(text) if text.isdecimal() and len(text) < 10 else None


def next_listed(key: str) -> str | None:
    """The next key of the list that this person came from."""
    listed = st.session_state.get("queue", [])
    at = listed.index(key) if key in listed else -1
    return str(listed[at + 1]) if listed[at + 1 :] else None


def next_waiting(judged: str) -> str | None:
    """As `next_listed`, else the worst that waits."""
    if key := next_listed(judged):
        return key
    waiting = opened.get("/v1/triage", limit=2)["trajectories"]
    return next((line["key"] for line in waiting if line["key"] != judged), None)


def advance(judged: str) -> None:
    """After a judgement the next one is opened, where that is wished."""
    if st.session_state.get("advance", True):
        skip(judged)


def skip(key: str) -> None:
    """Open the next."""
    if following := next_waiting(key):
        st.query_params["key"] = following
        st.query_params.pop("step", None)
    else:
        st.session_state["said"] = "; ".join(filter(None, (st.session_state.get("said"), "nothing else waits")))


def members(line: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The rollouts of its group among the newest of its task; None where it cannot be known cheaply."""
    if not line["group"]:
        return None
    narrowed = {"environment": line["environment"], "version": line["version"], "task": line["task"], "run": line["run"]}
    try:
        found = opened.get("/v1/trajectories", limit=MEMBERS, **narrowed)["trajectories"]
    except ApiError:
        return None
    return [other for other in reversed(found) if other["group"] == line["group"] and other["step"] == line["step"]]


def reached(line: dict[str, Any]) -> Reach:
    """What its run reports of updates from the episode's own step on."""
    if not line["run"]:
        return Reach([], None)
    try:
        reports = opened.get(f"/v1/runs/{values.part(line['run'])}/steps", start=max(line["step"] or 0, 0), limit=REPORTS)["steps"]
    except ApiError:
        return Reach([], None)
    used = [
        {"step": report["step"], "feed": report.get("feed"), **entry} for report in reports for entry in report.get("used") or () if entry["id"] == line["id"]
    ]
    read = [report["feed"]["seq"] for report in reports if report.get("feed")]
    return Reach(used, max(read, default=None))


def declared(line: dict[str, Any]) -> dict[str, Any] | None:
    """What is declared of the reward, the task's own over its environment version's, for the range of an override."""
    try:
        whole = opened.declaration(line["environment"], line["version"])
        own = opened.declaration(line["environment"], line["version"], task=line["task"])
    except ApiError:
        return None
    return values.overlaid(whole["declaration"].get("reward") or {}, own["declaration"].get("reward") or {})


def to_triage() -> None:
    """Back to the list, narrowed as it was."""
    back = {name: st.query_params[name] for name in FILTERS if name in st.query_params} or st.session_state.get("narrowed", {})
    if st.button("← Triage", key="triage", shortcut=keys.EPISODE["triage"], type="tertiary"):
        st.switch_page(session.TRIAGE_PAGE, query_params=back)


def bar(line: dict[str, Any]) -> None:
    """Where to go from here."""
    with st.container(horizontal=True, vertical_alignment="center"):
        to_triage()
        st.button("Skip", key="skip", shortcut=keys.EPISODE["skip"], type="tertiary", on_click=skip, args=(line["key"],))
        if st.button("Probes", key="environment", shortcut=keys.EPISODE["environment"], type="tertiary", help="what probes said of its task"):
            st.switch_page(session.ENVIRONMENT_PAGE, query_params={**versions.parameters(line), "task": line["task"]})
        panels.account(opened, keys.EPISODE, keys.IN_TRANSCRIPT)


def known(detail: dict[str, Any]) -> list[Section]:
    """All that is said of it, the verdict first."""
    line, verdict = detail["summary"], facts.verdict(detail)
    first = Section(verdict.title, verdict.facts + reach_facts(line, reached(line)))
    return [first, *facts.about(detail, members(line)), facts.history(detail), coverage.section(detail["coverage"])]


def page(key: str) -> None:
    """The transcript on the left, what is known and what may be done on the right."""
    try:
        detail = opened.trajectory(key)
    except ApiError as error:
        session.stop(error)
    line, found = detail["summary"], findings.shown(detail["findings"])
    left, right = st.columns([2.35, 1], gap="medium")
    with left:
        title = facts.title(line, st.session_state.get("queue", []))
        transcript(line["key"], title, found, step(), values.size(line["bytes"]), next_listed(line["key"]))
    with right:
        bar(line)
        panels.judge(opened, line | {"why_cause": next((f.cause for f in found), None)}, lambda: declared(line), advance)
        st.toggle("Go to the next after a judgement", value=True, key="advance")
        sheet(known(detail), key="sheet")
        panels.state(opened, line)


if wanted := st.query_params.get("key"):
    page(wanted)
else:
    find()
