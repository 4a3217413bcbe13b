"""Who is signed in: the cookie of this browser, and calls of the API with that person's authority."""

from __future__ import annotations

from typing import Any, NoReturn

import streamlit as st

from dashboard import configuration, connections, holding
from inspector.client.http import Api, ApiError
from inspector.showable import showable

TRIAGE_PAGE, EPISODE_PAGE = "views/triage.py", "views/episode.py"
ENVIRONMENTS_PAGE, ENVIRONMENT_PAGE = "views/environments.py", "views/environment.py"


def secret() -> str | None:
    """The session's secret, as the browser sent it when it opened the page."""
    found = st.context.cookies.get(configuration.read().cookie)
    return found if isinstance(found, str) and found else None


def api() -> Api:
    """Calls as the signed-in person; the page ends here, with the way to sign in, where nobody is."""
    held = secret()
    if held is None:
        ask_to_sign_in("You are not signed in.")
    if st.session_state.get("secret") != held:
        st.session_state["secret"], st.session_state["api"] = held, connections.opened(configuration.read().api_url, held)
        st.session_state.pop("person", None)
        holding.forget()
    opened: Api = st.session_state["api"]
    return opened


def person(opened: Api) -> dict[str, Any]:
    """{name, role, project} of whoever is signed in; asked once, since every later call is refused when the session ends."""
    if "person" in st.session_state:
        return dict(st.session_state["person"])
    try:
        found: dict[str, Any] = opened.get("/v1/me")
    except ApiError as error:
        if error.status == 401:
            ask_to_sign_in("Your session has ended.")
        stop(error)
    st.session_state["person"] = found
    return found


def sign_out(opened: Api) -> None:
    """End the session at the service: the cookie is worth nothing from then on."""
    try:
        opened.delete("/v1/logins/session")
    except ApiError as error:
        st.session_state["failed"] = showable(error.reason)
    st.session_state.pop("person", None)


def ask_to_sign_in(why: str) -> NoReturn:
    """Say how, and end the page."""
    st.subheader(why)
    st.write("A login address opens this page once, with the authority of the key that asked for it:")
    st.code("inspector login", language=None)
    st.write("`inspector up` prints one too, each time it starts.")
    st.stop()


def stop(error: ApiError) -> NoReturn:
    """Say what the service answered, and end the page."""
    if error.status == 401:
        ask_to_sign_in("Your session has ended.")
    complain(error)
    st.stop()


def complain(error: ApiError) -> None:
    """Say what the service answered; its text is not taken as markup."""
    st.error("The service is not reachable." if error.status == 0 else f"The service answered {error.status}.")
    st.text(showable(f"{error.path}: {error.reason}" if error.path else error.reason, limit=1_000))
