"""What must hold for every route: declared roles, another project's things, a commit that fails."""

from __future__ import annotations

import hashlib
from uuid import UUID, uuid4

import msgspec
import psycopg
import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import RouteContext
from sqlalchemy import Connection, event

from inspector.api import create_app
from inspector.api.access import Allowed, Open
from inspector.api.openapi import api_routes, of_kind
from inspector.api.sessions import _session
from inspector.settings import Settings
from inspector.store import replays
from inspector.store.projects import Role
from inspector.store.session import transaction
from tests.api.conftest import paid_despite_failures

ROUTES = [(route, method) for route in api_routes(create_app(Settings())) for method in sorted(route.methods)]
NAMES = [f"{method} {route.path}" for route, method in ROUTES]
PUBLIC = {"/healthz", "/readyz", "/metrics", "/v1/logins/exchange"}

ARTIFACT = hashlib.sha256(b"a log").hexdigest()
BODIES = {
    "POST /v1/trajectories": paid_despite_failures("another"),
    "POST /v1/decisions/lookup": {"ids": ["a"]},
    "POST /v1/decisions/revoke": {"check": "builtin/nothing", "version": 1, "preview": False},
    "POST /v1/trajectories/{key}/review": {"judgement": "accept"},
    "PATCH /v1/trajectories/{key}": {"rewards": {"tests": {"score": 1.0}}},
    "PUT /v1/environments/{environment:path}/versions/{version}/tasks/{task:path}/state": {"state": "quarantined", "note": "x"},
    "PUT /v1/environments/{environment:path}/versions/{version}/state": {"state": "quarantined", "note": "x"},
    "PUT /v1/environments/{environment:path}/versions/{version}/tasks/{task:path}": {"reference_tests": 3},
    "PUT /v1/environments/{environment:path}/versions/{version}": {"reference_tests": 3},
    "POST /v1/runs/{run:path}/steps/{step}": {"policy_before": 1, "policy_after": 2},
    "PUT /v1/runs/{run:path}": {"mode": "enforce"},
    "POST /v1/keys": {"name": "k", "role": "trainer"},
    "POST /v1/projects": {"name": "new"},
    "POST /v1/webhooks": {"url": "https://hooks.example/decisions"},
    "POST /v1/webhooks/{id}/rotate": {"overlap_hours": 1},
    "POST /v1/webhooks/{id}/redeliver": {"after": 0},
    "POST /v1/logins/exchange": {"token": "t"},
    "PUT /v1/environments/{environment:path}/versions/{version}/package": {"artifact": ARTIFACT},
    "POST /v1/environments/{environment:path}/versions/{version}/probes": {"priority": "live"},
    "POST /v1/environments/{environment:path}/versions/{version}/regrade": {"by": "2026.11.1"},
    "POST /v1/probe-work/{work}/report": {"failure": "no tar"},
    "POST /v1/replay-work/{work}/report": {"failure": "no box"},
}

QUERIES = {"/v1/trajectories/{key}/search": {"q": "a"}} | {
    f"/v1/{kind}-work/{{work}}/{act}": {"lease": 1} for kind in ("probe", "replay") for act in ("package", "state", "renew", "report")
}
INSTALLATION = {Role.ADMIN: "admin", Role.PROBER: "prober"}


def roles_of(route: RouteContext) -> tuple[Role, ...]:
    allowed = next(of_kind(route, Allowed), None)
    return allowed.roles if allowed else ()


def address(route: RouteContext, **values: str) -> str:
    path = route.path
    for name, value in values.items():
        path = path.replace("{" + name + ":path}", value).replace("{" + name + "}", value)
    assert "{" not in path, path
    return path


@pytest.fixture
def posted(house):
    """acme has a judged trajectory in a declared environment, and a run with a step; the values of all path parameters."""
    [receipt] = house.post(paid_despite_failures("a", run={"id": "run-1"}))
    house.audit()
    where = house.get(f"/v1/trajectories/{receipt['key']}").json()["summary"]
    environment = f"/v1/environments/{where['environment']}/versions/{where['version']}"
    assert house.call("PUT", environment, {"reward": {"min": 0, "max": 1}}).status_code == 200
    assert house.call("PUT", f"{environment}/tasks/{where['task']}", {"reference_tests": 3}).status_code == 200
    assert house.call("POST", "/v1/runs/run-1/steps/1", {"policy_before": 1, "policy_after": 2}).status_code == 201
    assert house.client.put(f"/v1/artifacts/{ARTIFACT}", content=b"a log", headers=house.auth()).status_code == 201
    assert house.call("PUT", f"{environment}/package", {"artifact": ARTIFACT}).status_code == 201
    probe = house.call("POST", f"{environment}/probes", {"priority": "live"}).json()["id"]
    listing = house.call("POST", "/v1/probe-work", holder="prober").json()
    listed = {"listing": {"content_version": "c", "verifier_digest": "d", "tasks": [where["task"]]}}
    assert house.call("POST", f"/v1/probe-work/{listing['work']}/report", listed, "prober", lease=listing["lease"]).status_code == 200
    work = house.call("POST", "/v1/probe-work", holder="prober").json()["work"]
    with transaction(house.engine) as session:
        replays.sample(session, [(UUID(receipt["key"]), ARTIFACT)])
    replay = house.call("POST", "/v1/probe-work", holder="prober").json()["work"]
    key = house.call("POST", "/v1/keys", {"name": "extra", "role": "trainer"}).json()["id"]
    webhook = house.call("POST", "/v1/webhooks", {"url": "https://hooks.example/"}).json()["webhook"]["id"]
    check = "/".join(["builtin", next(iter(house.app.state.service.catalog.checks)).partition("/")[2]])
    return {
        "key": receipt["key"],
        "id": "a",
        "environment": where["environment"],
        "version": where["version"],
        "task": where["task"],
        "run": "run-1",
        "step": "1",
        "sha256": ARTIFACT,
        "probe_id": probe,
        "work": str(work),
        "replay_id": str(replay),
        "key_id": key,
        "webhook_id": webhook,
        "owner": check.partition("/")[0],
        "name": check.partition("/")[2],
    }


def values_for(route: RouteContext, posted: dict[str, str]) -> dict[str, str]:
    values = {k: v for k, v in posted.items() if k not in ("key_id", "probe_id", "replay_id", "webhook_id")}
    if route.path.startswith("/v1/replay-work/"):
        values["work"] = posted["replay_id"]
    if route.path == "/v1/keys/{id}":
        values["id"] = posted["key_id"]
    if route.path.startswith("/v1/webhooks/{id}"):
        values["id"] = posted["webhook_id"]
    if route.path.startswith("/v1/probes/{id}"):
        values["id"] = posted["probe_id"]
    return values


@pytest.mark.parametrize(("route", "method"), ROUTES, ids=NAMES)
def test_a_route_declares_its_roles(route, method):
    if route.path in PUBLIC:
        assert any(of_kind(route, Open))
    else:
        assert roles_of(route)


def test_a_route_asks_for_a_key_and_for_its_role(house, posted):
    for route, method in ROUTES:
        if route.path in PUBLIC:
            continue
        path, body = address(route, **values_for(route, posted)), BODIES.get(f"{method} {route.path}")
        content = msgspec.json.encode(body) if body else None
        assert house.client.request(method, path, content=content).status_code == 401, path
        wrong = {"Authorization": "Bearer ins_" + "x" * 43, "Content-Type": "application/json"}
        assert house.client.request(method, path, content=content, headers=wrong).status_code == 401, path
        for role in Role:
            if role not in roles_of(route):
                holder = INSTALLATION.get(role, f"acme-{role}")
                assert house.call(method, path, body, holder).status_code == 403, (method, path, role)


def test_a_parameter_that_a_route_does_not_have_is_named(house, posted):
    for route, method in ROUTES:
        if route.path in {"/healthz", "/readyz", "/metrics"}:
            continue
        path = address(route, **values_for(route, posted))
        answer = house.client.request(method, path, params={**QUERIES.get(route.path, {}), "verdct": "flag"}, headers=house.auth())
        assert (answer.status_code, answer.json()["error"]["path"]) == (422, "query.verdct"), path


PROJECT_FREE = {"/v1/checks", "/v1/checks/{owner}/{name}", "/v1/me", "/v1/projects", "/v1/logins", "/v1/logins/session"}
OWN_THINGS = {  # a route that makes something of the caller's own under that name, so another project's is not touched
    "POST /v1/trajectories",
    "POST /v1/keys",
    "PUT /v1/artifacts/{sha256}",
    "PUT /v1/runs/{run:path}",
    "POST /v1/runs/{run:path}/steps/{step}",
    "GET /v1/keys",
    "POST /v1/webhooks",
}


def test_another_projects_things_are_not_there(house, posted):
    tried = set()
    for route, method in ROUTES:
        name = f"{method} {route.path}"
        if route.path in PUBLIC | PROJECT_FREE or name in OWN_THINGS or roles_of(route) == (Role.PROBER,):
            continue
        role = next(role for role in (Role.OWNER, Role.REVIEWER, Role.TRAINER) if role in roles_of(route))
        parameters = {"environment": posted["environment"], "version": posted["version"]} if route.path == "/v1/trajectories" else QUERIES.get(route.path, {})
        answer = house.call(method, address(route, **values_for(route, posted)), BODIES.get(name), f"other-{role}", **parameters)
        tried.add(name)
        if name.startswith("PUT /v1/environments/{environment:path}") and not name.endswith("state"):
            assert answer.status_code == 403, name
        elif "{" in route.path or name == "POST /v1/decisions/revoke":
            assert answer.status_code == 404, (name, answer.text)
        else:
            assert answer.status_code == 200, (name, answer.text)
            found = answer.json()
            for listed in ("trajectories", "decisions", "environments", "runs", "states", "probes", "webhooks"):
                assert not found.get(listed), (name, found)
    assert len(tried) > 18
    lookup = house.call("POST", "/v1/decisions/lookup", {"ids": ["a"]}, "other-trainer", wait=0.05).json()
    assert (lookup["decisions"], lookup["unknown"]) == ({}, ["a"])
    assert house.post(paid_despite_failures("a"), holder="other-trainer")[0]["status"] == "created"


def test_a_declaration_that_another_project_tried_leaves_no_trace(house, posted):
    path = f"/v1/environments/{posted['environment']}/versions/{posted['version']}"
    assert house.call("PUT", path, {"reward": {"min": -5}}, "other-owner").status_code == 403
    assert house.get(path, "other-owner").status_code == 404
    assert house.get(path).json()["declaration"]["reward"] == {"min": 0.0, "max": 1.0, "paid_at": None, "weights": None, "penalty_min": None}


def depends_on_session(dependant: Dependant) -> bool:
    return dependant.call is _session or any(depends_on_session(d) for d in dependant.dependencies)


WRITING = [(route, method) for route, method in ROUTES if depends_on_session(route.dependant)]


def test_a_commit_that_fails_is_no_success_on_any_route(house, posted):
    assert len(WRITING) > 15

    def end_its_server(connection: Connection) -> None:
        with psycopg.connect(house.settings.database_url, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", (connection.connection.driver_connection.info.backend_pid,))

    for route, method in WRITING:
        path, body = address(route, **values_for(route, posted)), BODIES.get(f"{method} {route.path}")
        roles = roles_of(route)
        alone = next((holder for role, holder in INSTALLATION.items() if roles == (role,)), None)
        holder = alone or f"acme-{next(r for r in (Role.OWNER, Role.REVIEWER, Role.TRAINER) if not roles or r in roles)}"
        house.call("GET", "/v1/me", holder=holder)  # its key is known, so only the route itself commits
        if route.path == "/v1/decisions/revoke":
            found = house.get(f"/v1/trajectories/{posted['key']}")
            assert found.status_code == 200, found.text
            body = {"check": found.json()["findings"][0]["check"], "version": 1, "preview": False}
        if route.path == "/v1/logins/exchange":
            body = {"token": house.call("POST", "/v1/logins").json()["token"]}
        engine = house.app.state.service.engine
        event.listen(engine, "commit", end_its_server)
        try:
            answer = house.call(method, path, body, holder, **QUERIES.get(route.path, {}))
        finally:
            event.remove(engine, "commit", end_its_server)
        assert answer.status_code == 503, (method, path, answer.status_code, answer.text)


def test_every_wrong_key_of_a_path_is_404_or_422(house):
    for path in (f"/v1/trajectories/{uuid4()}", f"/v1/trajectories/{uuid4()}/raw", "/v1/trajectories/by-id/none/of/that", "/v1/runs/none", "/v1/nothing"):
        answer = house.get(path)
        assert answer.status_code == 404, path
        assert answer.json()["error"]["status"] == 404
    assert house.get("/v1/trajectories/not-a-key").json()["error"]["path"] == "path.key"
