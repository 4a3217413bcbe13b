"""Who may reach the dashboard's server, the one-time login, and the proxy's authority; in process, against the real API."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager

import httpx
import msgspec
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.testclient import TestClient

from dashboard.configuration import Configuration, read
from dashboard.guard import Guard, name_of, refused
from dashboard.login import Doors
from dashboard.proxy import Proxy
from dashboard.wording import findings
from inspector.testing import envelope
from tests.api.conftest import paid_despite_failures

HOSTS = read({"INSPECTOR_HOST": "0.0.0.0", "INSPECTOR_DASHBOARD_HOSTS": "Review.example.org"}).hosts


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("127.0.0.1:8643", None, None),
        ("[::1]:8643", None, None),
        ("localhost:8643", "http://localhost:8643", None),
        ("review.example.org", "https://review.example.org", None),
        ("evil.example", None, 421),
        ("127.0.0.1.evil.example:8643", None, 421),
        ("0.0.0.0:8643", None, 421),
        (None, None, 421),
        ("[", None, 421),
        ("127.0.0.1:8643", "http://evil.example", 403),
        ("127.0.0.1:8643", "http://127.0.0.1:9999", 403),
        ("127.0.0.1:8643", "null", 403),
    ],
)
def test_a_foreign_name_or_page_is_refused(host, origin, status):
    told = refused(host, origin, HOSTS)
    assert (told and told[0]) == status


def test_a_host_is_read_without_its_port():
    assert [name_of(h) for h in ("A.b:1", "[::1]:2", "", None)] == ["a.b", "::1", "", ""]


@pytest.fixture
def server(served):
    """The routes beside the pages, as the browser reaches them."""
    chosen = Configuration(served.url, HOSTS, "inspector_session_1")
    client = httpx.AsyncClient(base_url=served.url, trust_env=False)
    doors, proxy = Doors(chosen, client), Proxy(chosen, client)
    routes = [
        Route("/login", doors.login),
        Route("/logout", doors.logout),
        Route("/proxy/trajectories/{key}/steps", proxy.steps),
        Route("/proxy/trajectories/{key}/findings", proxy.findings),
        Route("/proxy/trajectories/{key}/search", proxy.search),
    ]

    @asynccontextmanager
    async def life(app):
        async with client:
            yield

    app = Starlette(routes=routes, middleware=[Middleware(Guard, hosts=HOSTS)], lifespan=life)
    with TestClient(app, base_url="http://127.0.0.1:8643", follow_redirects=False) as browser:
        yield browser


def sign_in(served, server, holder="acme-reviewer"):
    with served.api(holder) as api:
        token = api.post("/v1/logins")["token"]
    return server.get("/login", params={"token": token}), token


def test_a_login_address_works_once_and_leaves_a_cookie_that_no_script_reads(served, server):
    answer, token = sign_in(served, server)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert token not in answer.text + cookie
    assert answer.headers["referrer-policy"] == "no-referrer"
    again = server.get("/login", params={"token": token})
    assert again.status_code == 401
    assert "set-cookie" not in again.headers
    assert "inspector login" in again.text
    assert server.get("/login").status_code == 400


def test_the_proxy_acts_for_whoever_is_signed_in_and_for_nobody_else(served, server):
    keys = served.post(envelope(id="guarded"))
    path = f"/proxy/trajectories/{keys['guarded']}/steps"
    assert server.get(path).status_code == 401
    sign_in(served, server, "other-reviewer")
    assert server.get(path).status_code == 404
    server.cookies.clear()
    sign_in(served, server)
    window = server.get(path, params={"start": 0, "count": 5})
    assert window.status_code == 200
    assert window.json()["steps"][0]["blocks"]
    assert window.headers["cache-control"] == "no-store"  # the next person at this browser asks with an authority of their own
    assert server.get(path, headers={"origin": "http://evil.example"}).status_code == 403
    assert server.get(path, headers={"host": "evil.example"}).status_code == 421
    assert server.get(path, params={"count": 10**6}).status_code == 422
    assert server.get("/proxy/trajectories/nonsense/steps").json()["reason"]


def test_the_findings_come_ahead_of_the_page_as_it_gives_them(served, server):
    keys = served.post(paid_despite_failures("ahead", task={"id": "t\u202e"}))
    path = f"/proxy/trajectories/{keys['ahead']}/findings"
    assert server.get(path).status_code == 401
    sign_in(served, server, "other-reviewer")
    assert server.get(path).status_code == 404
    server.cookies.clear()
    sign_in(served, server)
    answer = server.get(path)
    assert answer.headers["cache-control"] == "no-store"
    told = answer.json()
    assert (told["title"]["task"], told["title"]["verdict"]) == ("t\\u{202e}", "quarantine")
    with served.api() as api:
        found = api.trajectory(keys["ahead"])["findings"]
    assert told["findings"] == msgspec.to_builtins(findings.shown(found)) != []


def test_signing_out_ends_the_session_at_the_service(served, server):
    sign_in(served, server)
    held = server.cookies["inspector_session_1"]
    assert server.get("/logout").status_code == 200
    assert "inspector_session_1" not in server.cookies
    server.cookies["inspector_session_1"] = held
    keys = served.post(envelope(id="left"))
    end = time.monotonic() + 10  # a process may know a session for two more seconds
    while httpx.get(f"{served.url}/v1/trajectories/{keys['left']}", headers={"Authorization": f"Bearer {held}"}, trust_env=False).status_code != 401:
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_search_is_made_showable(served, server):
    steps = [{"step_id": 1, "source": "user", "message": "a\x1b[31m needle \u202e"}]
    keys = served.post(envelope(id="found", trajectory={"schema_version": "ATIF-v1.6", "agent": {"name": "a", "version": "1"}, "steps": steps}))
    sign_in(served, server)
    [match] = server.get(f"/proxy/trajectories/{keys['found']}/search", params={"q": "needle"}).json()["matches"]
    assert (match["before"], match["match"], match["after"], match["start"]) == ("a␛[31m ", "needle", " \\u{202e}", 7)
