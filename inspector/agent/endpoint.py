"""Speaks to a model behind an OpenAI-compatible chat endpoint, within a deadline, and trusts nothing that comes back."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import httpx
import msgspec

from inspector.errors import InspectorError
from inspector.showable import showable

ANSWER_BYTES = 4 << 20
ATTEMPTS = 4
PAUSE_S = 1.0  # before the second attempt; twice as long before each further one
AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504})


class EndpointFailed(InspectorError):
    """The model gave no usable answer: nothing is to be said about the task by it."""


class Message(msgspec.Struct, frozen=True):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


class Reply(msgspec.Struct, frozen=True):
    """What the model said."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cut: bool = False  # it reached the limit of one answer


class _Said(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Said
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: _Usage | None = None


@dataclass(slots=True)
class Endpoint:
    """Where the model is asked: `url` with or without `/chat/completions`."""

    url: str
    model: str
    key: str = ""
    temperature: float = 1.0
    answer_tokens: int = 4096
    timeout_s: float = 120.0  # of one answer, all attempts together
    pause_s: float = PAUSE_S
    _client: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self._client = httpx.Client(follow_redirects=False, trust_env=False, headers={"Authorization": f"Bearer {self.key}"} if self.key else {})

    def close(self) -> None:
        """End its connections."""
        self._client.close()

    def ask(self, messages: Sequence[Message], *, seed: int | None = None) -> Reply:
        """The model's next turn. Asks again where the endpoint is busy; raises EndpointFailed."""
        ends, pause = time.monotonic() + self.timeout_s, self.pause_s
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._once(messages, seed, ends)
            except _Busy as error:
                if attempt == ATTEMPTS or time.monotonic() + pause >= ends:
                    raise EndpointFailed(str(error)) from error
            time.sleep(pause)
            pause *= 2
        raise AssertionError("the last attempt returned or raised")

    def _once(self, messages: Sequence[Message], seed: int | None, ends: float) -> Reply:
        body = {"model": self.model, "messages": messages, "temperature": self.temperature, "max_tokens": self.answer_tokens}
        if seed is not None:
            body["seed"] = seed
        status, answer = self._post(msgspec.json.encode(body), ends)
        if status in AGAIN:
            raise _Busy(f"the endpoint answered {status}")
        if status != 200:
            raise EndpointFailed(f"the endpoint answered {status}: {showable(answer[:300].decode(errors='replace'))}")
        return _read(answer)

    def _post(self, body: bytes, ends: float) -> tuple[int, bytes]:
        """Status and body; the deadline holds for the whole of it, however slowly it drips in."""
        left = ends - time.monotonic()
        if left <= 0:
            raise EndpointFailed(f"no answer within {self.timeout_s:g} s")
        address = self.url if self.url.endswith("/chat/completions") else self.url.rstrip("/") + "/chat/completions"
        held = bytearray()
        try:
            with self._client.stream("POST", address, content=body, headers={"Content-Type": "application/json"}, timeout=left) as response:
                for piece in response.iter_bytes():
                    held += piece
                    if len(held) > ANSWER_BYTES:
                        raise EndpointFailed(f"an answer of more than {ANSWER_BYTES} bytes")
                    if time.monotonic() > ends:
                        raise EndpointFailed(f"no whole answer within {self.timeout_s:g} s")
                return response.status_code, bytes(held)
        except httpx.TimeoutException as error:
            raise EndpointFailed(f"no answer within {self.timeout_s:g} s") from error
        except httpx.InvalidURL as error:
            raise EndpointFailed(f"{showable(self.url, limit=200)} is no address: {error}") from error
        except httpx.HTTPError as error:
            raise _Busy(f"the endpoint cannot be reached: {type(error).__name__}: {showable(str(error), limit=200)}") from error


class _Busy(Exception):
    """It may be asked again."""


def _read(answer: bytes) -> Reply:
    try:
        completion = msgspec.json.decode(answer, type=_Completion)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise EndpointFailed(f"the endpoint's answer is no chat completion: {showable(str(error), limit=200)}") from error
    if not completion.choices:
        raise EndpointFailed("the endpoint's answer has no choice")
    choice, usage = completion.choices[0], completion.usage or _Usage()
    return Reply(choice.message.content or "", usage.prompt_tokens, usage.completion_tokens, choice.finish_reason == "length")
