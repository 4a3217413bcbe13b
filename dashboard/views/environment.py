"""One environment version: what probes said of its tasks, worst first or beside another version, with the proof."""

from typing import NamedTuple

import streamlit as st

from dashboard import holding, keys, panels, probe_panel, probed, session
from dashboard.choosing import looked_at, settle
from dashboard.components.listing import listing
from dashboard.components.sheet import sheet
from dashboard.probed import Json, Scored
from dashboard.shapes import Cell, Listing, ListRow, Section
from dashboard.wording import changes, reports, values, versions
from inspector.client.http import ApiError

PAGE = 25
KEY = "tasks"
NOTHING = "No task was probed yet.\nOnce its package is registered an owner may start a probe."

opened = session.api()
environment, version = st.query_params.get("name", ""), st.query_params.get("version", "")
line = {"environment": environment, "version": version}
st.session_state.pop("go-version", None)  # it is here


class Told(NamedTuple):
    """What the page shows of the version."""

    scored: Scored
    state: Json
    against: Scored | None  # of the version beside it


class Shown(NamedTuple):
    """The list: all its lines in their order, of which a page is shown."""

    title: Cell
    kind: str
    heads: list[str]
    rows: list[ListRow]
    all: int  # rows that there are
    said: str  # what it is sorted by


def against() -> str | None:
    """The version beside it, as the address names it."""
    other = st.query_params.get("against")
    return other if other and other != version else None


def told() -> Told:
    """Asked of the service; the page ends where it refuses."""
    other = against()
    try:
        state = probed.state(opened, environment, version) or {}
        if other is None:
            return Told(probed.scored_until(opened, environment, version, looked_at(KEY, st.query_params.get("task")), PAGE), state, None)
        return Told(probed.scored(opened, environment, version), state, probed.scored(opened, environment, other))
    except ApiError as error:
        session.stop(error)


def shown(found: Told) -> Shown:
    """The tasks, or what changed since the version beside it."""
    title = versions.title(line, found.state, found.scored.card)
    if found.against is None:
        rows = [versions.task(one) for one in found.scored.lines]
        return Shown(title, "tasks", ["task", "outcomes", "probed"], rows, found.scored.card["probed"], "worst first")
    between = changes.between(found.against.lines, found.scored.lines)
    other = values.shown(str(against()))
    title = Cell(f"{title.text} beside {other}", "", chips=list(changes.counted(between)))
    part = "" if found.scored.whole and found.against.whole else f", of the worst {probed.MOST_TASKS:,} of each"
    rows = [versions.change(one) for one in between]
    return Shown(title, "changes", ["change", "task", other, values.shown(version)], rows, len(rows), changes.MEANING + part)


def choose(task: str | None) -> None:
    """Look at this task; its page of the list is shown."""
    st.query_params.pop("task", None)
    if task is not None:
        st.query_params["task"] = task


def turn_to(task: str | None) -> None:
    """Another page of the list, by a key."""
    settle(KEY)
    choose(task)


def compare() -> None:
    """Beside another version, or alone."""
    st.query_params.pop("against", None)
    if other := st.session_state.get("against"):
        st.query_params["against"] = other


def beside() -> None:
    """The choice of a version to compare with."""
    try:
        others = [one for one in probed.versions(opened, environment) if one != version]
    except ApiError:
        others = []
    now = against()
    if now is not None and now not in others:
        others.append(now)
    if others:
        st.session_state.setdefault("against", now)  # an index would leave no way to none
        st.selectbox(
            "Beside another version",
            others,
            None,
            values.shown,
            "against",
            on_change=compare,
            placeholder="beside another version",
            label_visibility="collapsed",
            width=230,
        )


def pages(keys_of_rows: list[str], at: int, list_: Shown) -> None:
    """Where in the list this page is, and the others."""
    first = at // PAGE * PAGE
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        beside()
        if first:
            st.button("First page", key="first page", shortcut=keys.ENVIRONMENT["first page"], on_click=turn_to, args=(None,))
        if first + PAGE < len(keys_of_rows):
            st.button("Next page", key="next page", shortcut=keys.ENVIRONMENT["next page"], on_click=turn_to, args=(keys_of_rows[first + PAGE],))
    if keys_of_rows:
        st.caption(f"{first + 1:,} to {min(first + PAGE, len(keys_of_rows)):,} of {list_.all:,} · J K move · {list_.said}")


def bar() -> None:
    """Where to go from here."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("← Environments", key="environments", shortcut=keys.ENVIRONMENT["environments"], type="tertiary"):
            st.switch_page(session.ENVIRONMENTS_PAGE, query_params={})
        if st.button("Waiting episodes", key="waiting", shortcut=keys.ENVIRONMENT["waiting"], type="tertiary"):
            st.switch_page(session.TRIAGE_PAGE, query_params={"environment": f"{environment}@{version}"})
        st.button("Look again", key="look again", shortcut=keys.ENVIRONMENT["look again"], type="tertiary", on_click=holding.forget)
        panels.account(opened, keys.ENVIRONMENT, keys.IN_QUEUE)


def newest() -> Json | None:
    """The newest probe of this version that the project asked for."""
    try:
        return probed.newest_of(opened, environment, version)
    except ApiError as error:
        if error.status == 403:  # an admin has no probes of its own
            return None
        session.stop(error)


def said_of(task: Json) -> list[Section]:
    """What the last probe that could say something says of a task."""
    try:
        standing = probed.state(opened, environment, version, task["task"])
        state = None if standing is None else values.standing(standing)
        return reports.sections(task, probed.report(opened, task["probe"], task["task"]), state, "it is not kept")
    except ApiError as error:
        why = "it belongs to the project that asked for the probe" if error.status == 404 else values.failure(error.reason, error.path)
        return reports.sections(task, None, None, why)


def page() -> None:
    """The tasks on the left, what is known of one and what may be done on the right."""
    found = told()
    list_ = shown(found)
    names = [row.key for row in list_.rows]
    wanted = looked_at(KEY, st.query_params.get("task"))
    at = names.index(wanted) if wanted in names else 0
    if wanted in names and st.query_params.get("task") != wanted:
        choose(wanted)
    task = names[at] if names and wanted in (None, names[at]) else None
    first = at // PAGE * PAGE
    left, right = st.columns([1.55, 1], gap="medium")
    with left:
        listing(Listing(list_.kind, list_.title, list_.heads, list_.rows[first : first + PAGE], NOTHING), task, key=KEY)
        pages(names, at, list_)
    with right:
        bar()
        probe_panel.panel(opened, environment, version, newest(), task)
        panels.state(opened, {**line, "task": task})
        scorecard = next((one for one in found.scored.lines if one["task"] == task), None)
        about = said_of(scorecard) if scorecard else []
        if wanted is not None and scorecard is None:
            st.text(f"No probe of this version said anything of {values.shown(wanted)}.")
        sheet([*about, *reports.version(found.scored.card)], key="sheet")
    settle(KEY)


if environment and version:
    page()
else:
    st.switch_page(session.ENVIRONMENTS_PAGE)
