"""Plain calls: every list to its end, every error with its status, reason and path."""

from __future__ import annotations

import httpx
import msgspec
import pytest

from inspector.client import Api, ApiError
from tests.client.conftest import KEY, envelope


@pytest.fixture
def api(url):
    with Api(url, KEY, timeout_s=5.0) as one:
        yield one


def test_lines_are_posted_and_their_decisions_awaited(api, service):
    receipts = api.post_lines([msgspec.json.encode(envelope(number)) for number in range(3)])
    assert [receipt.status for receipt in receipts] == ["created"] * 3
    service.rule = lambda line: {"action": "exclude", "final": True} if line["id"] == "t1" else None
    found = api.wait_for_decisions(["t0", "t1", "nobody"], 0.2)
    assert (found["t0"], found["t1"].action, found["nobody"]) == (None, "exclude", None)


def test_a_list_is_read_to_its_end(api, service):
    api.post_lines([msgspec.json.encode(envelope(number)) for number in range(5)])
    assert [row["id"] for row in api.pages("/v1/trajectories", "trajectories", limit=2)] == [f"t{number}" for number in range(5)]
    assert len(list(api.trajectories(most=3, environment="acme/terminal", version=None))) == 3


def test_an_error_answer_says_status_reason_and_path(api):
    with pytest.raises(ApiError) as caught:
        api.get("/v1/nothing")
    assert (caught.value.status, caught.value.reason, caught.value.path) == (404, "no route /v1/nothing", "$.url")


@pytest.mark.parametrize(("fault", "status"), [("reset", 0), ("html", 200), (503, 503)])
def test_every_failure_is_an_api_error(api, service, fault, status):
    service.fault = fault
    with pytest.raises(ApiError) as caught:
        api.me()
    assert caught.value.status == status
    assert api.ready() is (fault == "html")


def test_a_service_that_hangs_ends_in_time(url, service):
    service.fault = "hang"
    with Api(url, KEY, timeout_s=0.2) as one, pytest.raises(ApiError, match="ReadTimeout"):
        one.me()


@pytest.mark.parametrize(
    ("call", "method", "path"),
    [
        (lambda api: api.trajectory("a/b?c"), "GET", "/v1/trajectories/a%2Fb%3Fc"),
        (lambda api: api.trajectory_by_id("../x"), "GET", "/v1/trajectories/by-id/..%2Fx"),
        (lambda api: api.trajectory_by_id(".."), "GET", "/v1/trajectories/by-id/%2E%2E"),
        (lambda api: api.steps("k", 10, 50), "GET", "/v1/trajectories/k/steps?start=10&count=50"),
        (lambda api: api.review("k", "override", reward=0.0), "POST", "/v1/trajectories/k/review"),
        (lambda api: api.decisions(after=3, epoch="e", wait=2), "GET", "/v1/decisions?after=3&epoch=e&limit=200&wait=2"),
        (lambda api: api.declare("acme/t", "v 1", {}, task="x/y"), "PUT", "/v1/environments/acme/t/versions/v%201/tasks/x%2Fy"),
        (lambda api: api.set_state("acme/t", "1", "retired", note=""), "PUT", "/v1/environments/acme/t/versions/1/state"),
        (lambda api: api.set_mode("run 7", "enforce"), "PUT", "/v1/runs/run%207"),
        (lambda api: api.post_step("r", 3, {}), "POST", "/v1/runs/r/steps/3"),
        (lambda api: api.check("builtin/record"), "GET", "/v1/checks/builtin/record"),
        (lambda api: api.revoke_key("k1"), "DELETE", "/v1/keys/k1"),
        (lambda api: api.create_key("ci", "trainer", expires_in_days=3), "POST", "/v1/keys"),
    ],
)
def test_names_stay_in_their_place_in_the_address(call, method, path):
    seen = []

    def answer(request):
        seen.append((request.method, request.url.raw_path.decode()))
        return httpx.Response(200, json={})

    with Api("http://service", KEY, transport=httpx.MockTransport(answer)) as api:
        call(api)
    assert seen == [(method, path)]
