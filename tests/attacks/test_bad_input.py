"""What a hostile poster sends: each gets the answer that was promised, and what is acknowledged comes to a verdict."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest
import zstandard

from inspector.api.routes import posting
from inspector.testing import envelope
from tests.api.conftest import House

Shout = Callable[..., bytes]
STEP = {"step_id": 1, "source": "user", "message": "x"}


def line_of(id_: str, **overrides: Any) -> bytes:
    return json.dumps(envelope(**{"id": id_, "group": None, "run": None, **overrides})).encode()


def with_document(id_: str, document: bytes) -> bytes:
    """A line whose document is written out, for what no encoder would write."""
    return line_of(id_, trajectory={}).replace(b'"trajectory": {}', b'"trajectory": ' + document)


def document(*steps: bytes, more: bytes = b"") -> bytes:
    return b'{"schema_version": "ATIF-v1.8", "agent": {"name": "a", "version": "1"}' + more + b', "steps": [' + b",".join(steps) + b"]}"


def send(house: House, body: bytes, encoding: str | None = None, **parameters: Any) -> Any:
    headers = {**house.auth("acme-trainer"), "Content-Type": "application/x-ndjson"} | ({"Content-Encoding": encoding} if encoding else {})
    return house.client.post("/v1/trajectories", content=body, headers=headers, params=parameters)


def receipts(answer: Any) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text[:500]
    return [msgspec.json.decode(line) for line in answer.content.splitlines()]


def judged(house: House, receipt: dict[str, Any]) -> dict[str, Any]:
    """The trajectory after an audit: not pending, whatever it was."""
    assert receipt["status"] == "created", receipt
    house.audit()
    found: dict[str, Any] = house.get(f"/v1/trajectories/{receipt['key']}").json()
    assert found["summary"]["verdict"] != "pending"
    return found


def status_of(heard: bytes) -> int:
    return int(heard.split(b" ", 2)[1]) if heard else 0


# --- whole bodies ------------------------------------------------------------------------------------------------------


def wide(window_log: int, raw: bytes) -> bytes:
    parameters = zstandard.ZstdCompressionParameters(window_log=window_log, hash_log=6, chain_log=6, write_content_size=0)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return stream.compress(raw) + stream.flush()


@pytest.mark.parametrize(
    ("name", "body", "status"),
    [
        ("bomb", lambda: zstandard.compress(bytes(512 << 20)), 413),
        ("bomb of many frames", lambda: zstandard.compress(b" " * (8 << 20)) * 64, 413),
        ("bomb of line ends", lambda: zstandard.compress(b"\n" * (100 << 20)), 413),
        ("window of 1 GiB", lambda: wide(30, b"x" * 1000), 422),
        ("window of 2 GiB", lambda: wide(31, b"x" * 1000), 422),
        ("truncated frame", lambda: zstandard.compress(line_of("cut") + b"\n")[:-3], 422),
        ("two bytes", lambda: b"\x28\xb5", 422),
        ("a size that is not true", lambda: lying(), 422),
    ],
)
def test_a_zstd_body_that_cannot_be_read_is_refused_whole(house: House, name: str, body: Callable[[], bytes], status: int) -> None:
    refused = send(house, body(), "zstd")
    assert (refused.status_code, refused.json()["error"]["status"]) == (status, status), name
    assert house.app.state.service.budget.used == 0


def lying() -> bytes:
    """A frame that declares one byte more than it holds."""
    honest = bytearray(zstandard.ZstdCompressor(write_content_size=True).compress(b"x" * 1000))
    at = 5 if honest[4] & 0x20 else 6
    honest[at] ^= 1
    return bytes(honest)


# --- lines -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "line", "path"),
    [
        ("invalid UTF-8 deep inside", lambda: with_document("u", document(b'{"step_id": 1, "source": "user", "message": "\xff"}')), "$"),
        ("an overlong NUL", lambda: with_document("u", document(b'{"step_id": 1, "source": "user", "message": "\xc0\x80"}')), "$"),
        ("1e999 as reward", lambda: line_of("r").replace(b'"reward": 1.0', b'"reward": 1e999'), "$.reward"),
        ("1e999 in extra", lambda: line_of("r", extra={}).replace(b'"extra": {}', b'"extra": {"a": [0, 1e999]}'), "$.extra.a[1]"),
        ("10,000 deep in the envelope", lambda: line_of("d", extra={}).replace(b'"extra": {}', b'"extra": {"a": ' + b"[" * 10_000 + b"]" * 10_000 + b"}"), "$"),
        ("10,000 deep, never closed", lambda: b"[" * 10_000, "$"),
        ("a header's end in an id", lambda: line_of("a\r\nSet-Cookie: a=b"), "$.id"),
        ("a NUL in an id", lambda: line_of("a\0b"), "$.id"),
        ("C1 and line separators in an id", lambda: line_of("a\u0085\u2028"), "$.id"),
        ("a lone surrogate in an id", lambda: line_of("a\ud800"), "$"),
        ("5 MB of tiny objects in extra", lambda: line_of("t", extra={"a": [{}] * 1_300_000}), "$"),
        ("5 MB of tiny objects in tokens", lambda: line_of("t", tokens={"ids": [{}] * 1_300_000}), "$"),
        ("an array", lambda: b"[" + line_of("a") + b"]", "$"),
        ("a digest with a path", lambda: line_of("a", artifacts=[{"sha256": "../" * 20 + "etc"}]), "$.artifacts[0].sha256"),
    ],
)
def test_one_bad_line_is_rejected_alone(house: House, name: str, line: Callable[[], bytes], path: str) -> None:
    before, after = line_of(f"before {name}"), line_of(f"after {name}")
    began = time.process_time()
    answered = receipts(send(house, b"\n".join([before, line(), after, b""])))
    assert [receipt["status"] for receipt in answered] == ["created", "rejected", "created"]
    assert answered[1]["path"] == path
    assert answered[1]["reason"]
    assert time.process_time() - began < 5
    assert house.audit() == 2


def test_one_bad_line_among_500(house: House) -> None:
    lines = [line_of(f"five hundred {at}") for at in range(500)]
    lines[333] = lines[333][:-1]
    answered = receipts(send(house, b"\n".join(lines)))
    assert [receipt["line"] for receipt in answered if receipt["status"] != "created"] == [333]
    assert (answered[333]["status"], answered[333]["path"]) == ("rejected", "$")
    assert house.audit() == 499


def test_one_id_thrice_in_a_body(house: House) -> None:
    first, other = line_of("thrice"), line_of("thrice", reward=0.5)
    answered = receipts(send(house, b"\n".join([first, first, other])))
    assert [receipt["status"] for receipt in answered] == ["created", "duplicate", "conflict"]
    assert judged(house, answered[0])["summary"]["reward"] == 1.0


NUMBER = b'{"step_id": 1, "source": "agent", "message": "x", "metrics": {"cost_usd": 1e999}}'
DEEP = b'{"step_id": 1, "source": "user", "message": "x", "extra": {"a": %b}}'


@pytest.mark.parametrize(
    ("name", "inside", "where"),
    [
        ("1e999", lambda: document(NUMBER), "$.trajectory.steps[0].metrics.cost_usd"),
        ("100 deep", lambda: document(DEEP % (b"[" * 100 + b"]" * 100)), "$.trajectory.steps[0].extra.a"),
        ("5 million empty steps", lambda: document(*[b"{}"] * 5_000_000), "$.trajectory"),
        ("5 million empty objects", lambda: document(json.dumps(STEP).encode(), more=b', "extra": {"a": [' + b"{}," * 5_000_000 + b"{}]}"), "$.trajectory"),
        ("a million tidy steps", lambda: document(*[json.dumps(STEP).encode()] * 1_000_000), "$.trajectory.steps: 1000000 steps, the limit is 100000"),
        ("300,000 empty steps", lambda: document(*[b"{}"] * 300_000), "$.trajectory.steps"),
        ("no steps at all", lambda: b"{}", "$.trajectory.steps"),
    ],
)
def test_what_is_wrong_in_the_document_is_a_defect_and_no_rejection(house: House, name: str, inside: Callable[[], bytes], where: str) -> None:
    line = with_document(f"defect {name}", inside())
    [receipt] = receipts(send(house, line))
    found = judged(house, receipt)
    messages = [finding["message"] for finding in found["findings"] if finding["cause"] == "record_defect"]
    assert any(where in message for message in messages), messages
    assert house.get(f"/v1/trajectories/{receipt['key']}/raw").content == line


def test_10000_levels_in_the_document_are_refused_where_no_decoder_can_follow(house: House) -> None:
    [receipt] = receipts(send(house, with_document("ten thousand deep", document(DEEP % (b"[" * 10_000 + b"]" * 10_000)))))
    assert (receipt["status"], receipt["path"]) == ("rejected", "$")


def test_100000_steps_are_created_and_judged(house: House) -> None:
    steps = [json.dumps({**STEP, "step_id": at + 1}).encode() for at in range(100_000)]
    [receipt] = receipts(send(house, with_document("long", document(*steps))))
    judged(house, receipt)
    window = house.get(f"/v1/trajectories/{receipt['key']}/steps", start=99_990, count=50).json()
    assert (window["total"], len(window["steps"])) == (100_000, 10)


def test_foreign_words_do_not_come_back_as_headers_or_controls(house: House) -> None:
    answer = house.client.get("/v1/me", headers={**house.auth(), "X-Request-Id": "a\u009b31m \u2028".encode("latin-1", "replace")})
    assert answer.headers["x-request-id"].replace("-", "").isalnum()
    [receipt] = receipts(send(house, line_of("bidi \u202e \u200b", environment={"id": "a/\u202e", "version": "\x7f"})))
    assert (receipt["status"], receipt["path"]) == ("rejected", "$.environment.version")
    assert "\x7f" not in receipt["reason"]


# --- HTTP itself -------------------------------------------------------------------------------------------------------


def request(house: House, head: str, body: bytes = b"") -> bytes:
    key = house.keys["acme-trainer"]
    return f"{head}\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Type: application/x-ndjson\r\n".encode() + body


POST = "POST /v1/trajectories HTTP/1.1"


@pytest.mark.parametrize(
    ("name", "head", "rest", "status"),
    [
        ("negative length", POST, b"Content-Length: -1\r\n\r\n", 400),
        ("length of words", POST, b"Content-Length: ten\r\n\r\n", 400),
        ("length beyond 64 bits", POST, b"Content-Length: " + b"9" * 100 + b"\r\n\r\n", 400),
        ("length over the limit, and no body", POST, b"Content-Length: 99999999999\r\n\r\n", 413),
        ("two lengths", POST, b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n12345", 400),
        ("length and chunks", POST, b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        ("broken chunk", POST, b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        ("no HTTP", "\x16\x03\x01", b"\r\n", 400),
        ("a NUL in a header", POST, b"X-A: \0\r\n\r\n", 400),
        ("a NUL in a query", "GET /v1/runs?after=%00 HTTP/1.1", b"Connection: close\r\n\r\n", 422),
        ("a NUL in a path", "GET /v1/runs/%00 HTTP/1.1", b"Connection: close\r\n\r\n", 422),
        ("half a character in a path", "GET /v1/runs/%ff HTTP/1.1", b"Connection: close\r\n\r\n", 404),
    ],
)
def test_broken_requests_are_refused(house: House, shout: Shout, name: str, head: str, rest: bytes, status: int) -> None:
    heard = shout(request(house, head, rest))
    assert status_of(heard) == status, heard[:300]
    assert house.client.get("/healthz").status_code == 200


def test_garbage_behind_a_request_does_not_become_one(house: House, shout: Shout) -> None:
    body = line_of("pipelined") + b"\n"
    heard = shout(
        request(house, POST, b"Content-Length: %d\r\n\r\n" % len(body) + body + b"\0\xff GARBAGE\r\n\r\n" + b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    )
    assert [int(part[:3]) for part in heard.split(b"HTTP/1.1 ")[1:]] in ([200, 400], [400])


def test_a_body_that_stops_is_not_stored_and_gives_its_bytes_back(house: House, shout: Shout) -> None:
    body = line_of("stops") + b"\n"
    shout(request(house, POST, b"Content-Length: %d\r\n\r\n" % (len(body) + 1_000_000) + body), quiet_s=1.0)
    assert house.call("POST", "/v1/decisions/lookup", {"ids": ["stops"]}).json()["unknown"] == ["stops"]
    assert house.app.state.service.budget.used == 0


def test_a_slow_body_is_ended(house: House, shout: Shout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting, "BODY_S", 0.5)
    heard = shout(request(house, POST, b"Content-Length: 1000\r\n\r\n{"))
    assert status_of(heard) == 408
    assert house.app.state.service.budget.used == 0


# --- addresses, cursors, waits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["..%2f..%2fetc", "%E2%80%AE", "a%2Fb%2Fversions%2F1", "%F0%9F%92%A3" * 100, "%EF%BC%8F", "A" * 201, "%C2%85", "%0d%0aX: y"])
def test_odd_names_in_a_path_are_names_or_refused(house: House, name: str) -> None:
    for path in (
        f"/v1/runs/{name}",
        f"/v1/environments/{name}/versions/{name}",
        f"/v1/trajectories/by-id/{name}",
        f"/v1/artifacts/{name}",
        f"/v1/checks/{name}/{name}",
    ):
        assert house.get(path).status_code in (404, 405, 422), path


CURSORS = [
    b"1e999",
    b"-1",
    b"9" * 30,
    b"9" * 400,
    b"null",
    b"[]",
    b'"\\u0000"',
    b"[" * 700,
    b'{"a":1}',
    b"NaN",
    b'["x",1,2]',
    b"[99999,1e308,null]",
    b"\xff",
    b"true",
]


@pytest.mark.parametrize("path", ["/v1/trajectories", "/v1/triage", "/v1/environments", "/v1/runs", "/v1/decisions/snapshot", "/v1/runs/cursed/steps"])
@pytest.mark.parametrize("inside", CURSORS)
def test_a_cursor_of_ones_own_making_is_no_failure(house: House, path: str, inside: bytes) -> None:
    house.call("PUT", "/v1/runs/cursed", {"mode": "observe"})
    answer = house.get(path, after=base64.urlsafe_b64encode(inside).decode().rstrip("="))
    assert answer.status_code in (200, 410, 422), answer.text


def test_a_cursor_of_another_project_shows_nothing_of_it(house: House) -> None:
    for at in range(3):
        send(house, line_of(f"mine {at}"))
    cursor = house.get("/v1/trajectories", limit=1).json()["next"]
    assert house.get("/v1/trajectories", "other-owner", after=cursor).json()["trajectories"] == []


@pytest.mark.parametrize("wait", ["nan", "inf", "-1", "1e999", "3601", "", "\u0661"])
def test_waits_without_sense_are_refused(house: House, wait: str) -> None:
    answers = [house.get("/v1/decisions", wait=wait), send(house, line_of("w"), wait=wait), house.call("POST", "/v1/decisions/lookup", {"ids": []}, wait=wait)]
    assert {answer.status_code for answer in answers} == {422}


# --- control bodies ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (b'{"reward": {"min": 1e999}}', "$.reward.min"),
        (b'{"reward": {"min": NaN}}', "$"),
        (b'{"reward": {"min": -Infinity}}', "$"),
        (b'{"reward": {"min": "0"}}', "$.reward.min"),
        (b'{"limits": {"steps": -1}}', "$.limits.steps"),
        (b'{"limits": {"steps": 1e30}}', "$.limits.steps"),
        (b'{"owner": 5, "contact": ', "$.owner"),
        (b'{"owner": 5, "contact": ' + b"[" * 10_000, "$.owner"),
        (b'{"owner": "\xff"}', "$"),
        (b'{"reward": {"weights": {"a": 1e999}}}', "$.reward.weights[...]"),
    ],
)
def test_a_declaration_that_makes_no_sense_names_the_field(house: House, body: bytes, path: str) -> None:
    answer = house.client.put("/v1/environments/acme/odd/versions/1", content=body, headers={**house.auth(), "Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["error"].get("path")) == (422, path), answer.text


def test_large_asks_are_refused(house: House) -> None:
    [receipt] = receipts(send(house, line_of("noted")))
    note = house.call("POST", f"/v1/trajectories/{receipt['key']}/review", {"judgement": "accept", "note": "x" * 1_000_000}, "acme-reviewer")
    assert note.status_code in (413, 422)
    assert len(note.content) < 2000
    assert house.call("POST", "/v1/decisions/lookup", {"ids": ["x"] * 10_001}).status_code == 422
    assert house.call("POST", "/v1/decisions/lookup", {"ids": ["x" * 200] * 10_000}).status_code == 413
    assert house.call("POST", "/v1/decisions/lookup", {"ids": ["same"] * 10_000}).json()["unknown"] == ["same"]


def test_a_report_of_a_step_that_nests_deep_is_no_failure(house: House) -> None:
    for levels in (64, 300, 900, 950, 980, 1_000, 5_000):
        body = b'{"policy_before": 1, "policy_after": 2, "statistics": {"a": ' + b"[" * levels + b"]" * levels + b"}}"
        headers = {**house.auth("acme-trainer"), "Content-Type": "application/json"}
        answer = house.client.post(f"/v1/runs/deep/steps/{levels}", content=body, headers=headers)
        assert answer.status_code in (201, 422), (levels, answer.text)
    assert house.get("/v1/runs/deep/steps").status_code == 200


def test_what_belongs_to_another_project_is_not_there(house: House) -> None:
    [receipt] = receipts(send(house, line_of("not yours", verifier={"exit_code": 124, "timed_out": True})))
    judged(house, receipt)
    [finding, *_] = house.get(f"/v1/trajectories/{receipt['key']}").json()["findings"]
    asked = {"check": finding["check"], "version": finding["version"], "preview": False}
    answer = house.call("POST", "/v1/decisions/revoke", asked, "other-owner")
    assert answer.status_code == 404 or answer.json()["decisions"] == 0
    assert house.call("PATCH", f"/v1/trajectories/{receipt['key']}", {"reward": 0.0}, "other-trainer").status_code == 404
    assert house.call("POST", f"/v1/trajectories/{receipt['key']}/review", {"judgement": "accept", "note": ""}, "other-reviewer").status_code == 404


# --- artifacts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("digest", ["0" * 63, "0" * 65, "G" * 64, "A" * 64, "..%2f" * 12, "%2e%2e", "0" * 64 + "%0a", "0" * 64 + "%00"])
def test_an_artifact_has_a_digest_for_a_name_and_no_path(house: House, digest: str) -> None:
    headers = house.auth("acme-trainer")
    assert house.client.put(f"/v1/artifacts/{digest}", content=b"x", headers=headers).status_code in (404, 405, 422)


def test_an_artifact_that_is_not_its_digest_leaves_nothing(house: House) -> None:
    digest = hashlib.sha256(b"another").hexdigest()
    refused = house.client.put(f"/v1/artifacts/{digest}", content=b"x" * 3_000_000, headers=house.auth("acme-trainer"))
    assert (refused.status_code, refused.json()["error"]["path"]) == (422, "path.sha256")
    assert house.get(f"/v1/artifacts/{digest}").status_code == 404
    assert [path for path in (house.settings.store_path / "artifacts").rglob("*") if path.is_file()] == []


# --- races -------------------------------------------------------------------------------------------------------------


def at_once(act: Callable[[int], Any], times: int) -> list[Any]:
    with ThreadPoolExecutor(times) as threads:
        return list(threads.map(act, range(times)))


def test_of_many_patches_of_one_field_one_counts(house: House) -> None:
    [receipt] = receipts(send(house, line_of("raced", reward=None)))
    path = f"/v1/trajectories/{receipt['key']}"
    answers = at_once(lambda at: house.call("PATCH", path, {"reward": at / 10}, "acme-trainer"), 8)
    assert sorted(answer.status_code for answer in answers) == [200, *[409] * 7]
    [winner] = [at for at, answer in enumerate(answers) if answer.status_code == 200]
    assert judged(house, receipt)["summary"]["reward"] == winner / 10


def test_of_many_posts_of_one_id_one_is_created(house: House) -> None:
    answers = at_once(lambda at: house.post_one(line_of("posted at once", reward=at / 10)), 8)
    assert sorted(answer.status_code for answer in answers) == [201, *[409] * 7]


def test_a_login_token_opens_once(house: House) -> None:
    token = house.call("POST", "/v1/logins").json()["token"]
    answers = at_once(lambda _: house.client.post("/v1/logins/exchange", json={"token": token}), 8)
    assert sorted(answer.status_code for answer in answers) == [201, *[401] * 7]
