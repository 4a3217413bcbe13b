"""A model that says what a test wrote down for it, behind a real endpoint; and tasks to work on in real boxes."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from inspector.agent import Agent, Allowance, Endpoint
from inspector.environments.opening import open_environments


class Model:
    """What it was asked, and what it answers: texts, or (status, bytes). The last one is repeated."""

    def __init__(self):
        self.answers, self.asked = [], []

    def next(self):
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def model():
    model = Model()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            model.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            model.path, model.key = self.path, self.headers.get("Authorization")
            said = model.next()
            if isinstance(said, str):
                choice = {"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
                said = 200, json.dumps({"choices": [choice], "usage": {"prompt_tokens": 10, "completion_tokens": 5}}).encode()
            self.send_response(said[0])
            self.send_header("Content-Length", str(len(said[1])))
            self.end_headers()
            self.wfile.write(said[1])

        def log_message(self, *_):
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    model.url = f"http://127.0.0.1:{server.server_port}/v1"
    yield model
    server.shutdown()
    server.server_close()


@pytest.fixture
def agent(model):
    """Made with the allowance that a test names."""
    made = []

    def make(**allowance):
        endpoint = Endpoint(model.url, "tiny", key="k", timeout_s=5, pause_s=0.01)
        made.append(endpoint)
        return Agent(endpoint, Allowance(**{"action_s": 5, "turns": 6, **allowance}))

    yield make
    for endpoint in made:
        endpoint.close()


@pytest.fixture
def greeting(tmp_path, boxes):
    """A task without a reference: /app/greeting.txt is to say hello."""
    folder = tmp_path / "greeting"
    for name, text in {
        "task.toml": 'schema_version = "1.4"\n[agent]\ntimeout_sec = 30.0\n[verifier]\ntimeout_sec = 20.0\n',
        "instruction.md": "Write hello into /app/greeting.txt.\n",
        "environment/Dockerfile": "FROM python:3.11-slim\nWORKDIR /app\nRUN echo start > /app/notes.txt\n",
        "tests/test.sh": "mkdir -p /logs/verifier\nif grep -qx hello /app/greeting.txt; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    [environment] = open_environments(str(folder), backend=boxes)
    return environment
