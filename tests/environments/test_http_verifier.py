"""A verifier behind HTTP: one deadline, a bounded answer, no redirect."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from inspector.environments.protocol import Conditions, Text, Trouble, Unreadable


class Judge(BaseHTTPRequestHandler):
    """Pays `42`, and misbehaves by its path."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = body["response"]["output"][0]["content"][0]["text"]
        right = float(text == str(body["wanted"]) and body["responses_create_params"]["input"][0]["content"] == "6 * 7?")
        if self.path == "/slow/verify":
            self._trickle()
        elif self.path == "/moved/verify":
            self.send_response(307)
            self.send_header("Location", "/verify")
            self.end_headers()
        else:
            answers = {
                "/verify": {"reward": right},
                "/nan/verify": {"reward": float("nan")},
                "/none/verify": {},
                "/long/verify": {"reward": 1, "x": "x" * (2 << 20)},
            }
            self._say(500 if self.path == "/broken/verify" else 200, json.dumps(answers.get(self.path, {})).encode())

    def _trickle(self):
        self.send_response(200)
        self.end_headers()
        try:
            for _ in range(100):
                self.wfile.write(b" ")
                self.wfile.flush()
                time.sleep(0.05)
        except OSError:
            self.close_connection = True

    def _say(self, status, data):
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        try:
            self.wfile.write(data)
        except OSError:
            self.close_connection = True

    def log_message(self, *_):
        """Quiet."""


@pytest.fixture(scope="module")
def address():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Judge)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def asked(opened, rows, address):
    """Grades an answer at a path of the judge."""

    def of(path, text, **conditions):
        environment = opened(f"{address}{path}", rows({"prompt": "6 * 7?", "wanted": 42, "answer": "42"}))
        (task,) = environment.tasks()
        assert task.reference == Text("42")
        return environment.grade(task, Text(text), Conditions(**conditions))

    return of


def test_the_right_answer_is_paid(asked):
    assert [asked("/verify", text).reward for text in ("42", "41")] == [1.0, 0.0]


@pytest.mark.parametrize(
    ("path", "trouble", "said"),
    [
        ("/nan/verify", Trouble.MALFORMED, "no finite reward"),
        ("/none/verify", Trouble.MALFORMED, "no finite reward"),
        ("/long/verify", Trouble.MALFORMED, "more than"),
        ("/broken/verify", Trouble.MALFORMED, "status 500"),
        ("/moved/verify", Trouble.REFUSED, "status 307"),
    ],
)
def test_what_is_no_reward_is_a_trouble(asked, path, trouble, said):
    grade = asked(path, "42")
    assert (grade.reward, grade.trouble) == (None, trouble)
    assert said in grade.evidence


def test_an_answer_that_trickles_in_meets_one_deadline(asked):
    began = time.monotonic()
    assert asked("/slow/verify", "42", timeout_s=0.4).trouble is Trouble.TIMED_OUT
    assert time.monotonic() - began < 4


def test_nobody_there_is_no_fault_of_the_task(opened, rows):
    environment = opened("http://127.0.0.1:9/verify", rows({"prompt": "6 * 7?"}))
    assert environment.grade(environment.tasks()[0], Text("42")).trouble is Trouble.BROKEN
    assert environment.grade(environment.tasks()[0], Text("42"), Conditions(network=False)).trouble is Trouble.REFUSED


@pytest.mark.parametrize("name", ["http:///verify", "http://user:word@127.0.0.1/verify"])
def test_an_address_must_be_plain(opened, rows, name):
    with pytest.raises(Unreadable, match="no plain"):
        opened(name, rows({"prompt": "?"}))
