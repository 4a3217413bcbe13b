"""A verifier behind HTTP, as NeMo Gym speaks: `POST …/verify` with the row and a response, answered with a reward.

The address is the user's own word, never a row's. One deadline holds for the whole call, redirects are not followed, and an answer has at most 1 MiB.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import httpx

from inspector.egress import Egress, NoAnswer, Refused
from inspector.environments import boxes
from inspector.environments.answers import Question, Taken, read_questions
from inspector.environments.protocol import AS_DECLARED, Conditions, Grade, Submission, TaskUnderTest, Text, Trouble, Unreadable
from inspector.environments.rows import Row
from inspector.environments.trees import digest

DEADLINE_S = 30.0
ANSWER_BYTES = 1 << 20


class HttpVerifier:
    """An address, and rows to send there."""

    def __init__(self, address: str, rows: Sequence[Row], *, deadline_s: float = DEADLINE_S, egress: Egress | None = None) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
            raise Unreadable(f"{address!r:.200} is no plain http(s) address")
        self.id = f"{parts.hostname}{parts.path}"
        self._address = address
        self._deadline_s = deadline_s
        self._egress = egress  # None: whoever asks for the call makes it from their own machine
        self._questions = {each.id: each for each in read_questions(rows)}

    @cached_property
    def version(self) -> str:
        """sha256 of the address and the rows; what answers there may change unseen."""
        rows = [(id.encode(), repr((each.prompt, sorted(each.columns.items()))).encode()) for id, each in sorted(self._questions.items())]
        return digest([(self._address.encode(), b""), *rows])

    @cached_property
    def verifier_digest(self) -> str:
        """sha256 of the address: its code is not ours to see."""
        return digest([(self._address.encode(), b"")])

    def tasks(self) -> Sequence[TaskUnderTest]:
        """In the order of the rows; what a row names as right is taken as it stands."""
        return [each.task(Taken("{}")) for each in self._questions.values()]

    def grade(self, task: TaskUnderTest, submission: Submission, conditions: Conditions = AS_DECLARED) -> Grade:
        """Post a response, and read the reward."""
        if not isinstance(submission, Text):
            return Grade(None, trouble=Trouble.REFUSED, evidence="an answer in words is graded here")
        if conditions.network is False:
            return Grade(None, trouble=Trouble.REFUSED, evidence="this verifier is reached by the network alone")
        began = time.monotonic()
        grade = self._posted(_body(self._questions[task.id], submission.text), conditions.timeout_s or self._deadline_s)
        return Grade(grade.reward, grade.components, grade.trouble, grade.evidence, wall_s=time.monotonic() - began)

    def _posted(self, body: Mapping[str, Any], seconds: float) -> Grade:
        if self._egress is not None:
            return self._through(replace(self._egress, deadline_s=seconds, answer_bytes=ANSWER_BYTES + 1), body)
        try:
            status, data = asyncio.run(asyncio.wait_for(self._answer(body), seconds))
        except (TimeoutError, httpx.TimeoutException):
            return Grade(None, trouble=Trouble.TIMED_OUT, evidence=f"timeout: no answer within {seconds:g} s")
        except httpx.HTTPError as error:
            return Grade(None, trouble=Trouble.BROKEN, evidence=f"{type(error).__name__}: {str(error)[:300]}")
        return _read(status, data)

    def _through(self, egress: Egress, body: Mapping[str, Any]) -> Grade:
        try:
            found = egress.post(self._address, json.dumps(body).encode(), {"Content-Type": "application/json"})
        except Refused as error:
            return Grade(None, trouble=Trouble.REFUSED, evidence=f"this verifier is not called: {error}")
        except NoAnswer as error:
            return Grade(None, trouble=Trouble.BROKEN, evidence=str(error))
        return _read(found.status, found.body)

    async def _answer(self, body: Mapping[str, Any]) -> tuple[int, bytes]:
        data = b""
        async with (
            httpx.AsyncClient(timeout=None, follow_redirects=False, trust_env=False) as client,  # noqa: S113 -- one deadline is set around all of it
            client.stream("POST", self._address, json=body) as response,
        ):
            async for more in response.aiter_bytes():
                data += more
                if len(data) > ANSWER_BYTES:
                    break
        return response.status_code, data


def _body(question: Question, text: str) -> Mapping[str, Any]:
    messages = question.prompt if isinstance(question.prompt, list) else [{"role": "user", "content": question.prompt}]
    message = {
        "id": "message",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }
    response = {
        "id": "response",
        "object": "response",
        "created_at": 0.0,
        "model": "probe",
        "output": [message],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
    }
    return {"responses_create_params": {"input": messages}, **question.columns, "response": response}


def _read(status: int, data: bytes) -> Grade:
    shown = data[:500].decode(errors="replace")
    if len(data) > ANSWER_BYTES:
        return Grade(None, trouble=Trouble.MALFORMED, evidence=f"an answer of more than {ANSWER_BYTES} bytes")
    if status >= 500:
        return Grade(None, trouble=Trouble.MALFORMED, evidence=f"status {status}: {shown}")
    if status != httpx.codes.OK:
        return Grade(None, trouble=Trouble.REFUSED, evidence=f"status {status}: {shown}")
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        said = None
    reward = said.get("reward") if isinstance(said, dict) else None
    if isinstance(reward, bool) or not isinstance(reward, int | float) or boxes.finite(reward) is None:
        return Grade(None, trouble=Trouble.MALFORMED, evidence=f"no finite reward in the answer: {shown}")
    return Grade(float(reward), evidence=shown)
