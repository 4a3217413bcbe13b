"""What a person may do about an episode, its task and its environment version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from dashboard import holding, keys, session
from dashboard.wording import values
from inspector.client.http import Api, ApiError

Json = Mapping[str, Any]
Range = Callable[[], Json | None] | None  # asked for only when it is to be shown
Which = Callable[[str | None], str | None]
NOTE = "a note on the decision"
CAUSES = ("policy_exploit", "verifier_defect", "environment_defect", "infrastructure", "record_defect", "anomaly")
CAUSE_PX = 194
STATES = ("quarantined", "active", "probation", "watch", "retired")
STATE_MEANING = {
    "quarantined": "quarantine: clients in enforce stop rolling it out",
    "active": "release: used as usual again",
    "probation": "probation: used at a reduced sampling weight",
    "watch": "watch: used as before, audited more",
    "retired": "retire: never again",
}


def said() -> None:
    """What the last act came to, once."""
    if done := st.session_state.pop("said", None):
        st.toast(done)
    if failed := st.session_state.pop("failed", None):
        st.error("That was not done.")
        st.text(failed)


def account(opened: Api, buttons: Mapping[str, str], component: Mapping[str, str]) -> None:
    """The keys of the page, who is looking, and the way out."""
    with st.popover("Keys and account", type="tertiary", on_change="rerun", key="account") as opening:
        if opening.open:
            st.code(keys.documented(buttons, component), language=None)
            who = session.person(opened)
            st.text(f"{values.shown(who['name'])}, {who['role']} of {values.shown(who['project'] or 'the installation')}")
            st.button("Sign out", key="sign-out", on_click=session.sign_out, args=(opened,))


def judge(opened: Api, line: Json, reward: Range, after: Callable[[str], None], which: Which = lambda shown: shown, *, beside: bool = False) -> None:
    """Accept, quarantine or override, with a note and a cause above or `beside`; `after` is called with the key that was judged.

    `which` says what the person looks at when a key is pressed, where that may no longer be `line`.
    """
    row = st.container(horizontal=True, gap="small") if beside else None
    with row or st.container(horizontal=True, gap="small"):
        st.text_input("Note", key=f"note-{line['key']}", placeholder=NOTE, label_visibility="collapsed", max_chars=10_000)
        _cause(line)
    with row or st.container(horizontal=True, gap="small"):
        act = {"args": (opened, line["key"], after, which)}
        st.button("Accept", key="accept", shortcut=keys.JUDGING["accept"], on_click=_judged("accept"), **act)  # type: ignore[arg-type]
        st.button("Quarantine", key="quarantine", shortcut=keys.JUDGING["quarantine"], on_click=_judged("quarantine"), **act)  # type: ignore[arg-type]
        scored = line["reward"] is not None
        why = None if scored else "it was not scored: there is no reward to override"
        st.button("Override", key="override", shortcut=keys.JUDGING["override"], disabled=not scored, help=why, on_click=_turn, args=(line["key"], which))
    if scored and st.session_state.get("overriding") == line["key"]:
        _override(opened, line, reward, after)


def _cause(line: Json) -> None:
    """Of the fault, for whoever quarantines or overrides; what the checks found is chosen already."""
    found = line["cause"] or line.get("why_cause")
    at = CAUSES.index(found) if found in CAUSES else None
    st.selectbox(
        "Cause of the fault", CAUSES, at, "cause: {}".format, f"cause-{line['key']}", placeholder="cause: none", label_visibility="collapsed", width=CAUSE_PX
    )


def _turn(shown: str, which: Which) -> None:
    """Open the field for the reward, or close it."""
    key = which(shown)
    st.session_state["overriding"] = None if st.session_state.get("overriding") == key else key


def _override(opened: Api, line: Json, reward: Range, after: Callable[[str], None]) -> None:
    wanted = line["reward_override"] if line["reward_override"] is not None else 0.0
    with st.form("override-form", border=False), st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.caption(f"Paid {values.amount(line['reward'])}; {values.reward_range(reward() if reward else None)}.", width="content")
        st.number_input("Reward to use", value=float(wanted), step=0.1, format="%g", key=f"reward-{line['key']}", label_visibility="collapsed", width=140)
        st.form_submit_button(
            "Set the reward",
            key="set reward",
            shortcut=keys.JUDGING["set reward"],
            type="primary",
            on_click=_judged("override"),
            args=(opened, line["key"], after, lambda shown: shown),
        )


def _judged(judgement: str) -> Callable[[Api, str, Callable[[str], None], Which], None]:
    def act(opened: Api, shown: str, after: Callable[[str], None], which: Which) -> None:
        key = which(shown)
        if key is None or (key, judgement) == st.session_state.get("last-act"):  # a key that was pressed twice
            return
        reward = float(st.session_state[f"reward-{key}"]) if judgement == "override" else None
        cause = st.session_state.get(f"cause-{key}") if judgement != "accept" else None
        try:
            decision = opened.review(key, judgement, note=st.session_state.get(f"note-{key}", ""), reward=reward, cause=cause)
        except ApiError as error:
            st.session_state["failed"] = values.failure(error.reason, error.path)
            return
        st.session_state["last-act"] = (key, judgement) if judgement != "override" else None
        fault = f" as {decision['cause']}" if decision.get("cause") else ""
        st.session_state["said"] = f"{_PAST[judgement]}{fault}, logged as seq {decision['seq']}"
        after(key)

    return act


_PAST = {"accept": "Accepted", "quarantine": "Quarantined", "override": "Reward overridden"}


def state(opened: Api, line: Json) -> None:
    """Quarantine or release the task or the environment version, with a note and a confirmation."""
    with st.expander("Task and environment version", on_change="rerun", key="state-open") as opening:
        if not opening.open:
            return
        task = _which(line["task"])
        try:
            told = opened.declaration(line["environment"], line["version"], task=task)
        except ApiError as error:
            session.complain(error)
            return
        st.text(f"{values.environment(line)}{'' if task is None else ' / ' + values.shown(task)}: {values.standing(told)}")
        st.selectbox("New state", [s for s in STATES if s != told["state"]], key="state-wanted", format_func=STATE_MEANING.__getitem__)
        st.text_input("Why", key="state-note", placeholder="the evidence, for its owner and everyone who posts it", max_chars=10_000)
        sure = st.checkbox("Every project that posted it will be told", key="state-sure")
        ready = sure and st.session_state["state-note"].strip()
        st.button("Set the state", key="set state", shortcut=keys.EPISODE["set state"], disabled=not ready, on_click=_set_state, args=(opened, line, task))


def _which(task: str | None) -> str | None:
    """The task, or None for the whole version."""
    if task is None:
        return None
    which = st.radio("Which", ("this task", "the whole environment version"), key="state-scope", horizontal=True, label_visibility="collapsed")
    return task if which == "this task" else None


def _set_state(opened: Api, line: Json, task: str | None) -> None:
    wanted, note = st.session_state["state-wanted"], st.session_state["state-note"].strip()
    try:
        told = opened.set_state(line["environment"], line["version"], wanted, note=note, task=task)
    except ApiError as error:
        st.session_state["failed"] = values.failure(error.reason, error.path)
        return
    st.session_state["said"] = f"Now {told['state']}; {told['projects_told']} projects were told" + (f", here as seq {told['seq']}" if told["seq"] else "")
    st.session_state["state-sure"], st.session_state["state-note"] = False, ""
    holding.forget()
