"""The newest probe of an environment version: how far it is, and what an owner may do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from dashboard import holding, keys, session
from dashboard.wording import outcomes, values
from inspector.client.http import Api, ApiError

Json = Mapping[str, Any]
DEPTHS = ("quick", "full")
PRIORITIES = ("live", "probe", "backfill")


def panel(opened: Api, environment: str, version: str, newest: Json | None, task: str | None) -> None:
    """Where the newest probe of this project is, and for owners the ways to end it and to start another, of `task` alone too."""
    owner = session.person(opened)["role"] == "owner"
    if newest is None:
        st.caption("This project asked for no probe of this version lately.")
    else:
        _progress(newest)
    with st.container(horizontal=True, gap="small"):
        if owner and newest is not None and newest["state"] in outcomes.GOES_ON:
            st.button("Halt", key="cancel probe", shortcut=keys.ENVIRONMENT["cancel probe"], on_click=_cancel, args=(opened, newest["id"]))
        if owner:
            _start(opened, environment, version, task)
    if not owner:
        st.caption("Owners of the project that registered its package may start probes.")


def _progress(probe: Json) -> None:
    st.text(outcomes.standing(probe))
    if probe["state"] in outcomes.GOES_ON:
        st.progress(probe["done"] / probe["total"] if probe["total"] else 0.0)
    if probe["note"]:
        st.text(values.shown(probe["note"]))


def _start(opened: Api, environment: str, version: str, task: str | None) -> None:
    with st.popover("Start a probe", on_change="rerun", key="probe-form") as opening:
        if not opening.open:
            return
        st.radio("Depth", DEPTHS, key="probe-depth", horizontal=True, label_visibility="collapsed")
        st.selectbox("Priority", PRIORITIES, 1, "priority: {}".format, "probe-priority", label_visibility="collapsed")
        st.number_input(
            "CPU seconds at most", min_value=0.0, value=None, placeholder="CPU seconds at most", key="probe-cpu", format="%g", label_visibility="collapsed"
        )
        if task is not None:
            st.checkbox("The chosen task alone", key="probe-one")
        st.button(
            "Start", key="start probe", type="primary", shortcut=keys.ENVIRONMENT["start probe"], on_click=_ask, args=(opened, environment, version, task)
        )


def _ask(opened: Api, environment: str, version: str, task: str | None) -> None:
    given = st.session_state
    wanted: dict[str, Any] = {"depth": given["probe-depth"], "priority": given["probe-priority"]}
    if given["probe-cpu"]:
        wanted["budget"] = {"cpu_s": given["probe-cpu"]}
    if task is not None and given.get("probe-one"):
        wanted["tasks"] = [task]
    try:
        opened.start_probe(environment, version, wanted)
    except ApiError as error:
        given["failed"] = values.failure(error.reason, error.path)
        return
    given["said"] = "The probe is asked for"
    given["probe-form"] = False
    holding.forget()


def _cancel(opened: Api, probe: str) -> None:
    try:
        opened.cancel_probe(probe)
    except ApiError as error:
        st.session_state["failed"] = values.failure(error.reason, error.path)
        return
    st.session_state["said"] = "The probe ends before its next task; what it found stands"
    holding.forget()
