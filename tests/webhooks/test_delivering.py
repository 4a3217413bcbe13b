"""Deliveries to a real receiver: signed, in order, at least once, and given up in the end."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from typing import Any
from uuid import UUID

import pytest

from inspector.client.webhooks import BadSignature, Event, verify
from inspector.egress import Egress
from inspector.store import decisions, webhooks
from inspector.store.decisions import Numbered
from inspector.store.session import driver, transaction
from inspector.task import State
from inspector.verdict import Action, Decision, Scope
from inspector.webhooks import delivering
from inspector.webhooks.delivering import Deliverer
from inspector.webhooks.patience import PAUSES_S, pause_s
from tests.api.conftest import House, open_house  # noqa: F401 -- a fixture

KEY = "the operator's"
DAYS = 86_400.0


class Receiver:
    """What came, as it was verified; answers what it is told to."""

    def __init__(self) -> None:
        self.secrets: list[str] = []
        self.events: list[Event] = []
        self.status: Callable[[int], int] = lambda posts: 200
        self.headers: dict[str, str] = {}
        self.posts = 0
        self.lock = threading.Lock()

    def take(self, body: bytes, headers: Any) -> int:
        event = verify(body, dict(headers), self.secrets)
        with self.lock:
            self.posts += 1
            status = self.status(self.posts)
            if status == 200:
                self.events.append(event)
            return status

    @property
    def seqs(self) -> list[int]:
        return [event.data["decision"]["seq"] for event in self.events if "decision" in event.data]


@pytest.fixture
def receiver() -> Iterator[tuple[Receiver, str]]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                status = receiver.take(body, self.headers)
            except BadSignature:
                status = 401
            self.send_response(status)
            for name, value in {"Content-Length": "4", **receiver.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(b"\x1b[31")

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield receiver, f"http://127.0.0.1:{server.server_address[1]}/hook"
    server.shutdown()
    server.server_close()


class Bench:
    """A house, a receiver, and those who deliver."""

    def __init__(self, house: House, receiver: Receiver, url: str) -> None:
        self.house, self.receiver, self.url = house, receiver, url
        port = int(url.rpartition(":")[2].partition("/")[0])
        self.egress = Egress(networks=(ip_network("127.0.0.0/8"),), ports=frozenset({port}), plain=True, deadline_s=5.0)
        self.deliverer = Deliverer(house.engine, self.egress, KEY, chance=random.Random(1))
        with transaction(house.engine) as session:
            row = driver(session).execute("SELECT id FROM project WHERE name = 'acme'").fetchone()
        assert row is not None
        self.project = int(row[0])

    def register(self, **wanted: Any) -> str:
        made = self.house.call("POST", "/v1/webhooks", {"url": self.url, **wanted})
        assert made.status_code == 201, made.text
        self.receiver.secrets.append(made.json()["secret"])
        return str(made.json()["webhook"]["id"])

    def read(self, id_: str) -> dict[str, Any]:
        return dict(self.house.get(f"/v1/webhooks/{id_}").json())

    def attempts(self, id_: str) -> list[dict[str, Any]]:
        return list(self.house.get(f"/v1/webhooks/{id_}/attempts").json()["attempts"])

    def decide(self, count: int, scope: Scope = Scope.TRAJECTORY, action: Action = Action.EXCLUDE) -> None:
        state = State.QUARANTINED if action is Action.SET_STATE else None
        entries = [Numbered(Decision(seq=0, scope=scope, action=action, trajectory=f"t{at}", state=state), None) for at in range(count)]
        with transaction(self.house.engine) as session:
            decisions.append(session, self.project, entries)

    def now_due(self, id_: str) -> float:
        """Make it due; the seconds that were left."""
        with transaction(self.house.engine) as session:
            row = driver(session).execute("SELECT extract(epoch FROM due_at - clock_timestamp()) FROM webhook WHERE id = %s", (UUID(id_),)).fetchone()
            driver(session).execute("UPDATE webhook SET due_at = clock_timestamp() WHERE id = %s", (UUID(id_),))
        assert row is not None
        return float(row[0])


@pytest.fixture
def bench(open_house: Callable[..., House], receiver: tuple[Receiver, str]) -> Bench:  # noqa: F811
    port = receiver[1].rpartition(":")[2].partition("/")[0]
    return Bench(open_house(egress_plain=True, egress_ports=port), *receiver)


def test_what_is_decided_comes_signed_and_in_order(bench: Bench) -> None:
    bench.decide(3)
    id_ = bench.register()
    bench.decide(120)
    while bench.deliverer.drain(20.0):
        pass
    assert bench.receiver.seqs == list(range(4, 124))
    assert {event.type for event in bench.receiver.events} == {"decision.exclude"}
    assert len({event.id for event in bench.receiver.events}) == 120
    assert (bench.read(id_)["seq"], bench.read(id_)["failures"]) == (123, 0)
    assert bench.attempts(id_)[0] | {"ms": 0, "id": 0, "message": "", "attempted_at": ""} == {
        "id": 0, "message": "", "seq": 123, "status": 200, "ms": 0, "said": "␛[31", "attempted_at": ""
    }  # fmt: skip


def test_only_what_was_asked_for_comes(bench: Bench) -> None:
    id_ = bench.register(scopes=["task", "environment_version"], actions=["set_state"])
    bench.decide(150)
    bench.decide(1, Scope.TASK, Action.SET_STATE)
    bench.decide(1, Scope.TASK, Action.EXCLUDE)
    while bench.deliverer.drain(20.0) or bench.read(id_)["seq"] < 152:
        pass
    assert bench.receiver.seqs == [151]
    assert bench.read(id_)["seq"] == 152


def test_a_failure_is_tried_again_later_and_nothing_overtakes_it(bench: Bench) -> None:
    id_ = bench.register()
    bench.decide(5)
    bench.receiver.status = lambda posts: 500 if posts in (3, 4) else 200
    for pause in PAUSES_S[:2]:
        bench.deliverer.drain(20.0)
        assert bench.deliverer.drain(20.0) == 0, "it is not due"
        assert pause - 2 <= bench.now_due(id_) <= pause * 1.1
    bench.deliverer.drain(20.0)
    assert bench.receiver.seqs == [1, 2, 3, 4, 5]
    assert [each["status"] for each in bench.attempts(id_)] == [200, 200, 200, 500, 500, 200, 200]
    messages = [each["message"] for each in reversed(bench.attempts(id_)) if each["seq"] == 3]
    assert len(messages) == 3
    assert len(set(messages)) == 1, "it is the same message"
    assert bench.read(id_)["failures"] == 0


def test_after_three_days_it_is_disabled_and_its_owner_can_have_it_all_again(bench: Bench) -> None:
    id_ = bench.register()
    bench.decide(2)
    bench.receiver.status = lambda posts: 503
    waited = 0.0
    while not bench.read(id_)["disabled_at"]:
        bench.deliverer.drain(20.0)
        waited += bench.now_due(id_)
    assert 3 * DAYS <= waited <= 4 * DAYS
    assert bench.read(id_)["why"] == "10 attempts in a row failed, the last with: status 503"
    assert bench.deliverer.drain(20.0) == 0
    bench.receiver.status = lambda posts: 200
    assert bench.house.call("POST", f"/v1/webhooks/{id_}/redeliver", {"after": 0}).json()["disabled_at"] is None
    bench.deliverer.drain(20.0)
    assert bench.receiver.seqs == [1, 2]
    assert bench.house.call("POST", f"/v1/webhooks/{id_}/redeliver", {"after": 3}).status_code == 422


def test_what_is_gone_is_disabled_at_once(bench: Bench) -> None:
    id_ = bench.register()
    bench.decide(1)
    bench.receiver.status = lambda posts: 410
    bench.deliverer.drain(20.0)
    assert bench.read(id_)["why"] == "it answered 410: gone"


def test_a_wish_to_be_left_alone_is_heeded() -> None:
    chance = random.Random(1)
    for failures in range(1, len(PAUSES_S) + 1):
        plain = pause_s(failures, {}, chance)
        assert plain is not None
        assert PAUSES_S[failures - 1] <= plain <= PAUSES_S[failures - 1] * 1.1
    assert pause_s(len(PAUSES_S) + 1, {}, chance) is None
    for wish, least in (("120", 120.0), ("999999999", 3600.0), ("soon", 5.0), ("-5", 5.0), ("9" * 400, 5.0)):
        found = pause_s(1, {"retry-after": wish}, chance)
        assert found is not None
        assert least <= found <= least * 1.1


def test_a_receiver_of_an_address_that_is_not_public_is_never_called(bench: Bench) -> None:
    id_ = bench.register()
    bench.decide(1)
    Deliverer(bench.house.engine, Egress(ports=bench.egress.ports, plain=True), KEY).drain(20.0)
    assert bench.receiver.posts == 0
    assert bench.attempts(id_)[0]["said"] == "127.0.0.1 is not public"


def test_while_secrets_overlap_both_sign_and_then_the_new_one_alone(bench: Bench) -> None:
    id_ = bench.register()
    former = bench.receiver.secrets
    new = bench.house.call("POST", f"/v1/webhooks/{id_}/rotate", {"overlap_hours": 1}).json()["secret"]
    for secrets in (former, [new]):
        bench.receiver.secrets = secrets
        bench.decide(1)
        bench.deliverer.drain(20.0)
    assert bench.receiver.seqs == [1, 2]
    bench.house.call("POST", f"/v1/webhooks/{id_}/rotate", {"overlap_hours": 0})
    bench.decide(1)
    bench.deliverer.drain(20.0)
    assert bench.attempts(id_)[0]["status"] == 401


def test_no_secret_is_in_the_database(bench: Bench) -> None:
    bench.register()
    with transaction(bench.house.engine) as session:
        rows = driver(session).execute("SELECT w::text FROM webhook w").fetchall()
    assert bench.receiver.secrets[0].removeprefix("whsec_") not in str(rows)
    assert KEY not in str(rows)


def test_a_test_is_posted_even_to_a_disabled_one_and_moves_nothing(bench: Bench) -> None:
    id_ = bench.register()
    bench.decide(1)
    bench.receiver.status = lambda posts: 410 if posts == 1 else 200
    bench.deliverer.drain(20.0)
    assert bench.house.call("POST", f"/v1/webhooks/{id_}/test").status_code == 200
    assert bench.deliverer.drain(20.0) == 1
    assert [event.type for event in bench.receiver.events] == ["webhook.test"]
    assert (bench.read(id_)["seq"], bench.attempts(id_)[0]["status"]) == (0, 200)


def test_what_the_log_no_longer_holds_is_told_and_it_goes_on_from_there(bench: Bench) -> None:
    bench.register()
    bench.decide(20)
    with transaction(bench.house.engine) as session:
        decisions.trim(session, bench.project, 5)
    bench.deliverer.drain(20.0)
    bench.decide(1)
    bench.deliverer.drain(20.0)
    [restarted, after] = bench.receiver.events
    assert (restarted.type, restarted.data["seq"], restarted.data["snapshot"]) == ("feed.restarted", 20, "/v1/decisions/snapshot")
    assert after.data["decision"]["seq"] == 21


def test_several_deliver_at_once_and_each_message_comes_once_and_in_order(bench: Bench) -> None:
    bench.register()
    bench.decide(30)

    def work(number: int) -> None:
        deliverer = Deliverer(bench.house.engine, bench.egress, KEY)
        while bench.receiver.posts < 30:
            deliverer.drain(0.05)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3), timeout=60))
    assert bench.receiver.seqs == list(range(1, 31))


def test_who_dies_between_the_answer_and_the_note_has_it_posted_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    id_ = bench.register()
    bench.decide(3)

    class Died(BaseException):
        pass

    def die(*_: object) -> None:
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(delivering.Deliverer, "_settle", die)
        with pytest.raises(Died):
            bench.deliverer.drain(20.0)
    assert bench.deliverer.drain(20.0) == 0, "its lease stands"
    with transaction(bench.house.engine) as session:
        driver(session).execute("UPDATE webhook SET until = clock_timestamp() - interval '1 s' WHERE id = %s", (UUID(id_),))
    bench.deliverer.drain(20.0)
    assert bench.receiver.seqs == [1, 1, 2, 3]
    assert bench.receiver.events[0].id == bench.receiver.events[1].id


def test_old_attempts_are_forgotten(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "ATTEMPTS_KEPT", 5)
    id_ = bench.register()
    bench.decide(9)
    bench.deliverer.drain(20.0)
    assert [each["seq"] for each in bench.attempts(id_)] == [9, 8, 7, 6, 5]


@pytest.mark.parametrize("url", ["https://hooks.example:22/", "ftp://hooks.example/", "https://me:word@hooks.example/", "hooks.example"])
def test_an_address_that_is_never_called_is_refused_when_it_is_registered(bench: Bench, url: str) -> None:
    refused = bench.house.call("POST", "/v1/webhooks", {"url": url})
    assert (refused.status_code, refused.json()["error"]["path"]) == (422, "$.url")


def test_without_the_operators_key_there_are_no_webhooks(open_house: Callable[..., House]) -> None:  # noqa: F811
    refused = open_house(webhook_key="").call("POST", "/v1/webhooks", {"url": "https://hooks.example/"})
    assert (refused.status_code, "INSPECTOR_WEBHOOK_KEY" in refused.text) == (409, True)


def test_a_project_has_only_so_many(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "MOST", 2)
    for _ in range(2):
        bench.register()
    assert bench.house.call("POST", "/v1/webhooks", {"url": bench.url}).status_code == 409
