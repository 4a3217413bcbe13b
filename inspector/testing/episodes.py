"""Episodes to test checks on: ordinary ones to vary, and a corpus of odd ones that no check may stumble over."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from inspector import gates
from inspector.check import envelope
from inspector.settings import Limits
from inspector.trajectory import Trajectory

HOSTILE = "\x00\x1b[2J\u202e\u200b\ufeff</script><img src=x onerror=alert(1)>{{7*7}} ${HOME} %s %n '; DROP TABLE verdicts;-- ﷽ " + "A" * 3000
HOSTILE_LOG = "==== 3 failed, 9 passed in 1.2s ====\n\x1b[31mFAILED\x1b[0m\n" + "=" * 5000 + " " + "1 " * 5000 + HOSTILE


def trajectory(*, key: str = "", **overrides: Any) -> Trajectory:
    """An ordinary paid episode as a check sees it; each override takes the place of a whole field of `envelope()`, `steps` that of its steps."""
    return read(envelope(**overrides), key)


def read(posted: Mapping[str, Any], key: str = "") -> Trajectory:
    """A trajectory from an envelope as it would be posted."""
    return gates.read(json.dumps(posted).encode(), key)


def admitted(posted: Mapping[str, Any]) -> Trajectory:
    """The same; raises BadSubmission where the door would refuse it."""
    line = json.dumps(posted).encode()
    gates.admit(line, Limits())
    return gates.read(line)


def odd_trajectories() -> dict[str, Trajectory]:
    """Records that the door lets through and that are unlike what a check's author has in mind, by what is odd in them; fresh at each call."""
    return {name: read(posted) for name, posted in _odd().items()}


def _odd() -> dict[str, dict[str, Any]]:
    bare = {"id": "bare", "environment": {"id": "acme/bare", "version": "1"}, "task": {"id": "t"}, "reward": None, "trajectory": {}}
    nulls = {name: None for name in envelope() if name not in bare}
    return {
        "nothing but what is required": bare,
        "every optional field is null": {**envelope(), **nulls, "rewards": None, "errors": None, "tokens": None, "extra": None},
        "no steps": envelope(steps=[]),
        "not scored": envelope(reward=None),
        "scored zero": envelope(reward=0.0),
        "an integer reward": envelope(reward=1),
        "the largest numbers": envelope(reward=1.7e308, seed=2**62, verifier=_counts(2**62), rewards={"a": {"score": 1.7e308, "weight": 1.7e308}}),
        "the smallest numbers": envelope(reward=-1.7e308, seed=-(2**62), verifier=_counts(0), rewards={"a": {"score": -1.7e308, "weight": -1.7e308}}),
        "components without scores": envelope(rewards={"a": None, "b": {}, "c": {"score": None, "weight": 1.0}, "": {"score": 0.0}}),
        "hostile text in every step": envelope(steps=_hostile_steps(), termination={"reason": "﷽ {reason}"}, errors=[_error(HOSTILE)]),
        "a hostile verifier log": envelope(verifier={"exit_code": -11, "stdout": HOSTILE_LOG, "tests": {}}),
        "an empty verifier report": envelope(verifier={}, termination={}, errors=[{}]),
        "every kind of error": envelope(reward=0.0, errors=[_error("broke", boundary) for boundary in _BOUNDARIES], termination={"reason": "error"}),
        "a cut that took no time": envelope(reward=0.0, termination={"reason": "timeout", "timed_out": True}, started_at=_NOON, ended_at=_NOON),
        "it ended before it began": envelope(started_at=_NOON, ended_at="2020-01-01T00:00:00+05:30", termination={"truncated": True}),
        "tokens that are no base64": envelope(tokens={"ids": "!!", "loss_mask": "A", "logprobs": "", "spans": [[0, 5, 1], [-1, -1, -1]]}),
        "tokens of different lengths": envelope(tokens={"ids": "AAAAAA==", "loss_mask": "AQE=", "logprobs": None, "spans": [[9, 0, 99]]}),
        "steps that break the rules": envelope(steps=[{"step_id": 7, "source": "user"}, {"step_id": 7, "source": "agent", "tool_calls": []}]),
        "contents in parts": envelope(steps=[{"step_id": 1, "source": "agent", "message": [{"type": "text", "text": "a"}, {"type": "image", "source": {}}]}]),
        "two thousand steps": envelope(steps=[{"step_id": at + 1, "source": "agent", "message": "again"} for at in range(2000)]),
        "unknown fields": {**envelope(), "flavour": {"deep": [1, 2, {"er": None}]}},
    }


_BOUNDARIES = ["provider", "harness", "tool", "sandbox", "task", "verifier", None]
_NOON = "2026-11-30T12:00:00Z"


def _counts(number: int) -> dict[str, Any]:
    names = ("collected", "passed", "failed", "errors", "skipped")
    return {"exit_code": number, "duration_s": float(number), "tests": dict.fromkeys(names, number)}


def _error(message: str, boundary: str | None = "sandbox") -> dict[str, Any]:
    return {"type": "Broke", "boundary": boundary, "message": message}


def _hostile_steps() -> list[dict[str, Any]]:
    call = {"tool_call_id": "c", "function_name": HOSTILE[:50], "arguments": {"a.b[0]": HOSTILE, "n": {"m": [None, 1e300]}}}
    step = {"message": HOSTILE, "reasoning_content": HOSTILE, "tool_calls": [call], "observation": {"results": [{"content": HOSTILE}, {}]}}
    return [{"step_id": 1, "source": "user", "message": HOSTILE}, {"step_id": 2, "source": "agent", **step}]
