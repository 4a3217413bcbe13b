"""Posting trajectories through the front door."""

from __future__ import annotations

import gzip
import json

import msgspec
import pytest
import zstandard

from inspector.testing import envelope
from tests.api.conftest import paid_despite_failures


def test_one_trajectory_is_created_and_can_be_read_back_byte_for_byte(house):
    posted = msgspec.json.encode(envelope(id="a"))
    answer = house.post_one(posted)
    assert answer.status_code == 201, answer.text
    receipt = answer.json()
    assert (receipt["line"], receipt["id"], receipt["status"], receipt["mode"]) == (0, "a", "created", "observe")
    assert house.get(f"/v1/trajectories/{receipt['key']}/raw").content == posted


def test_the_same_again_is_a_duplicate_and_other_bytes_are_a_conflict(house):
    first = house.post_one(envelope(id="a", reward=1.0)).json()
    again = house.post_one(envelope(id="a", reward=1.0))
    other = house.post_one(envelope(id="a", reward=0.0))
    assert (again.status_code, again.json()["status"], again.json()["key"]) == (200, "duplicate", first["key"])
    assert (other.status_code, other.json()["status"], other.json()["key"]) == (409, "conflict", first["key"])


def test_one_bad_trajectory_is_rejected_with_the_path(house):
    answer = house.post_one({**envelope(id="a"), "reward": "much"})
    assert (answer.status_code, answer.json()["status"], answer.json()["path"]) == (422, "rejected", "$.reward")


def test_every_line_of_a_body_has_its_receipt(house):
    receipts = house.post(envelope(id="a"), {**envelope(id="b"), "reward": "x"}, envelope(id="a"), envelope(id="c"))
    assert [(r["line"], r["status"]) for r in receipts] == [(0, "created"), (1, "rejected"), (2, "duplicate"), (3, "created")]


def test_answers_to_posts_say_how_far_the_feed_is(house):
    answer = house.post_one(envelope(id="a"))
    assert answer.headers["inspector-seq"] == "0"
    assert answer.headers["inspector-epoch"]
    assert answer.headers["x-request-id"]


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("zstd", zstandard.ZstdCompressor().compress), ("identity", bytes)])
@pytest.mark.parametrize("content_type", ["application/json", "application/x-ndjson; charset=utf-8"])
def test_bodies_are_read_in_every_encoding(house, encoding, pack, content_type):
    body = pack(msgspec.json.encode(envelope(id="a")))
    headers = {**house.auth("acme-trainer"), "Content-Type": content_type, "Content-Encoding": encoding}
    answer = house.client.post("/v1/trajectories", content=body, headers=headers)
    assert answer.status_code in (200, 201), answer.text
    assert json.loads(answer.content)["status"] == "created"


def test_a_document_on_several_lines_is_one_trajectory(house):
    answer = house.post_one(json.dumps(envelope(id="a"), indent=2).encode())
    assert answer.status_code == 201, answer.text
    assert json.loads(house.get(f"/v1/trajectories/{answer.json()['key']}/raw").content) == envelope(id="a")


def test_wait_brings_the_decision_and_leaves_the_status(house):
    created = house.post_one(paid_despite_failures("a"))
    house.audit()
    again = house.post_one(paid_despite_failures("a"), wait=5)
    assert created.status_code == 201
    assert again.status_code == 200
    assert again.json()["decision"]["action"] == "exclude", again.text
    assert not {"verdict", "probability"} & again.json()["decision"].keys()
