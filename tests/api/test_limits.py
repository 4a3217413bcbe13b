"""What is refused, and how."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import zstandard

from inspector.settings import Limits
from inspector.testing import envelope

SMALL = Limits(body_bytes=200_000, inflated_bytes=400_000, line_bytes=100_000)


def send(house, body, content_type="application/x-ndjson", encoding=None, holder="acme-trainer"):
    headers = {**house.auth(holder), "Content-Type": content_type} | ({"Content-Encoding": encoding} if encoding else {})
    return house.client.post("/v1/trajectories", content=body, headers=headers)


def test_whole_bodies_are_refused_before_anything_is_stored(open_house):
    house = open_house(limits=SMALL)
    line = json.dumps(envelope(id="a")).encode() + b"\n"
    bomb = gzip.compress(line + b" " * 10_000_000)
    cases = [
        (line + b"x" * 300_000, None, 413),
        (bomb, "gzip", 413),
        (zstandard.compress(line + b" " * 10_000_000), "zstd", 413),
        (gzip.compress(line)[:-9], "gzip", 422),
        (line, "br", 415),
    ]
    for body, encoding, status in cases:
        answer = send(house, body, encoding=encoding)
        assert (answer.status_code, answer.json()["error"]["status"]) == (status, status)
        assert answer.json()["error"]["reason"]
    assert send(house, line, "text/plain").status_code == 415
    assert house.get("/v1/trajectories").json()["trajectories"] == []
    assert house.app.state.service.budget.used == 0


def test_one_long_line_is_rejected_alone(open_house):
    house = open_house(limits=SMALL)
    body = json.dumps(envelope(id="a")).encode() + b"\n" + b"x" * 120_000 + b"\n"
    receipts = [json.loads(line) for line in send(house, body).content.splitlines()]
    assert [r["status"] for r in receipts] == ["created", "rejected"]


@pytest.mark.parametrize("shared", [False, True], ids=["memory", "redis"])
def test_the_rate_is_counted_for_each_project(open_house, request, shared):
    house = open_house(limits=Limits(requests_per_minute=3), redis_url=request.getfixturevalue("redis") if shared else "")
    answers = [house.post_one(envelope(id=str(n))) for n in range(5)]
    assert [a.status_code for a in answers] == [201, 201, 201, 429, 429]
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert house.post_one(envelope(id="x"), holder="other-trainer").status_code == 201


def test_without_redis_nobody_is_refused_and_it_is_counted(open_house, tmp_path):
    house = open_house(limits=Limits(requests_per_minute=1), redis_url="redis+socket:///nowhere/at/all.sock")
    assert [house.post_one(envelope(id=str(n))).status_code for n in range(3)] == [201, 201, 201]
    page = house.client.get("/metrics").text
    assert "inspector_rate_failures_total 0.0" not in page
    assert "inspector_bell_failures_total 0.0" not in page
    assert 'inspector_workers_wanted{queue="audit"}' in page
    assert 'inspector_workers_wanted{queue="late"}' in page
    ready = house.client.get("/readyz")
    assert (ready.status_code, ready.json()["red"], len(ready.json()["amber"])) == (200, [], 1)


def test_control_bodies_name_the_field_and_refuse_what_they_do_not_know(house):
    for path, body, where in [
        ("/v1/keys", {"name": "x", "role": "king"}, "$.role"),
        ("/v1/keys", {"name": "x", "role": "owner", "colour": 1}, "$.colour"),
        ("/v1/keys", {"name": "x"}, "$.role"),
        ("/v1/decisions/lookup", {"ids": [1]}, "$.ids[0]"),
    ]:
        answer = house.call("POST", path, body)
        assert (answer.status_code, answer.json()["error"]["path"]) == (422, where)
    assert "king" in house.call("POST", "/v1/keys", {"name": "x", "role": "king"}).json()["error"]["reason"]
    answer = house.client.post("/v1/keys", content=b"{", headers=house.auth())
    assert (answer.status_code, answer.json()["error"]["path"]) == (422, "$")
    contradiction = house.call("PUT", "/v1/environments/a/b/versions/1", {"reward": {"min": 2, "max": 1}})
    assert (contradiction.status_code, contradiction.json()["error"]["path"]) == (422, "$.reward.min")


def test_a_bad_cursor_is_named(house):
    for path in ("/v1/trajectories", "/v1/triage", "/v1/environments", "/v1/runs", "/v1/decisions/snapshot"):
        answer = house.get(path, after="nonsense!")
        assert (answer.status_code, answer.json()["error"]["path"]) == (422, "after")


def test_a_full_store_is_507_and_not_ready(house, monkeypatch):
    import errno
    import os

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fdatasync", full)
    monkeypatch.setattr(os, "fsync", full)
    answer = house.post_one(envelope(id="a"))
    ready = house.client.get("/readyz")
    assert answer.status_code == 507
    assert answer.headers["retry-after"]
    assert (ready.status_code, ready.json()["ready"]) == (503, False)
    monkeypatch.undo()
    assert house.post_one(envelope(id="a")).status_code == 201


def test_an_unexpected_failure_says_nothing_of_its_inside(house, monkeypatch):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(house.app.state.service.intake, "accept", broken)
    answer = house.post_one(envelope(id="a"))
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert answer.headers["x-request-id"]


def test_a_damaged_segment_is_500_without_its_path(house):
    [receipt] = house.post(envelope(id="a"))
    for file in Path(house.settings.store_path).rglob("*.seg"):
        file.write_bytes(b"\0" * file.stat().st_size)
    answer = house.get(f"/v1/trajectories/{receipt['key']}/raw")
    assert answer.status_code == 500
    assert ".seg" not in answer.text
