"""An endpoint may fail in every way; the agent is told so, and never waits for longer than it said."""

import json

import pytest

from inspector.agent import Endpoint, EndpointFailed
from inspector.agent.endpoint import ANSWER_BYTES, Message

ASKED = [Message("user", "hello")]


@pytest.fixture
def endpoint(model):
    endpoint = Endpoint(model.url, "tiny", key="secret", timeout_s=5, pause_s=0.01)
    yield endpoint
    endpoint.close()


def test_the_model_is_asked_as_such_endpoints_are(model, endpoint):
    model.answers = ["hi"]
    reply = endpoint.ask(ASKED, seed=7)
    assert (reply.text, reply.prompt_tokens, reply.completion_tokens) == ("hi", 10, 5)
    assert (model.path, model.key) == ("/v1/chat/completions", "Bearer secret")
    assert model.asked == [{"model": "tiny", "messages": [{"role": "user", "content": "hello"}], "temperature": 1.0, "max_tokens": 4096, "seed": 7}]


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_endpoint_is_asked_again(model, endpoint, status):
    model.answers = [(status, b""), (status, b""), "hi"]
    assert endpoint.ask(ASKED).text == "hi"
    assert len(model.asked) == 3


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((503, b""), "answered 503"),
        ((401, b"\x1b[31mno such key"), "answered 401: \u241b[31mno such key"),
        ((302, b""), "answered 302"),
        ((200, b"<html>"), "no chat completion"),
        ((200, b"[" * 100_000), "no chat completion"),
        ((200, b"\xff\xfe"), "no chat completion"),
        ((200, json.dumps({"choices": []}).encode()), "has no choice"),
        ((200, b" " * (ANSWER_BYTES + 1)), "more than"),
    ],
)
def test_what_is_no_answer_is_said(model, endpoint, answer, said):
    model.answers = [answer]
    with pytest.raises(EndpointFailed, match=None) as raised:
        endpoint.ask(ASKED)
    assert said in str(raised.value)


def test_an_answer_without_words_is_an_empty_one(model, endpoint):
    model.answers = [(200, json.dumps({"choices": [{"message": {"content": None}}]}).encode())]
    assert endpoint.ask(ASKED).text == ""


def test_nobody_there_is_said():
    endpoint = Endpoint("http://127.0.0.1:9", "tiny", timeout_s=2, pause_s=0.01)
    with pytest.raises(EndpointFailed, match="cannot be reached"):
        endpoint.ask(ASKED)
    endpoint.close()
