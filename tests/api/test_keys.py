"""Keys, projects and signing in."""

from __future__ import annotations

import pytest

from inspector.api import access


@pytest.fixture
def fresh(monkeypatch):
    """No answer about a key is remembered."""
    monkeypatch.setattr(access, "FRESH_S", -1.0)


def me(house, key):
    return house.client.get("/v1/me", headers={"Authorization": f"Bearer {key}"})


def test_a_key_is_shown_once_and_ends_when_it_is_revoked(house, fresh):
    made = house.call("POST", "/v1/keys", {"name": "ci", "role": "trainer", "expires_in_days": 30})
    assert made.status_code == 201
    key = made.json()
    assert me(house, key["key"]).json() == {
        "key": key["id"], "name": "ci", "role": "trainer", "project": "acme", "project_id": me(house, key["key"]).json()["project_id"],
    }  # fmt: skip
    assert key["key"] not in house.get("/v1/keys").text
    assert house.call("DELETE", f"/v1/keys/{key['id']}").status_code == 204
    assert me(house, key["key"]).status_code == 401
    assert next(k for k in house.get("/v1/keys").json()["keys"] if k["id"] == key["id"])["revoked_at"]


def test_a_revoked_key_is_remembered_for_two_seconds_at_most():
    assert access.FRESH_S <= 2.0


def test_an_owner_makes_no_admin_and_no_key_of_another_project(house):
    assert house.call("POST", "/v1/keys", {"name": "x", "role": "admin"}).status_code == 403
    assert house.call("POST", "/v1/keys", {"name": "x", "role": "owner", "project": "other"}).status_code == 403


def test_an_admin_makes_projects_and_their_first_keys(house):
    made = house.call("POST", "/v1/projects", {"name": "third"}, "admin")
    assert made.status_code == 201
    assert me(house, made.json()["key"]["key"]).json()["project"] == "third"
    assert house.call("POST", "/v1/projects", {"name": "third"}, "admin").status_code == 409
    assert [p["name"] for p in house.get("/v1/projects", "admin").json()["projects"]] == ["acme", "other", "third"]
    assert house.call("POST", "/v1/keys", {"name": "r", "role": "reviewer", "project": "third"}, "admin").status_code == 201


def test_a_login_opens_one_session_that_ends_with_its_key(house, fresh):
    key = house.call("POST", "/v1/keys", {"name": "Ada", "role": "reviewer"}).json()
    offered = house.client.post("/v1/logins", headers={"Authorization": f"Bearer {key['key']}"}).json()
    assert offered["token"] in offered["address"]
    session = house.client.post("/v1/logins/exchange", json={"token": offered["token"]})
    assert session.status_code == 201
    assert house.client.post("/v1/logins/exchange", json={"token": offered["token"]}).status_code == 401
    assert me(house, offered["token"]).status_code == 401
    secret = session.json()["key"]
    assert (me(house, secret).json()["name"], me(house, secret).json()["role"]) == ("Ada", "reviewer")
    assert house.client.post("/v1/logins/exchange", json={"token": secret}).status_code == 401
    house.call("DELETE", f"/v1/keys/{key['id']}")
    assert me(house, secret).status_code == 401


def test_signing_out_ends_the_session_and_not_the_key(house, fresh):
    token = house.call("POST", "/v1/logins").json()["token"]
    secret = house.client.post("/v1/logins/exchange", json={"token": token}).json()["key"]
    assert house.client.delete("/v1/logins/session", headers={"Authorization": f"Bearer {secret}"}).status_code == 204
    assert me(house, secret).status_code == 401
    assert house.client.delete("/v1/logins/session", headers=house.auth()).status_code == 204
    assert house.get("/v1/me").status_code == 200
