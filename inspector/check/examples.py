"""A check's examples: episodes as they would be posted, which are its documentation and its tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from inspector.check.subjects import Baselines, History, Payments, Probed


@dataclass(frozen=True, slots=True)
class Example:
    """A subject with what it needs."""

    name: str
    posted: tuple[Mapping[str, Any], ...]  # envelopes as they would be posted; one for a trajectory, several for a group
    declaration: Mapping[str, Any] = field(default_factory=dict)
    history: History = field(default_factory=History)
    baselines: Baselines = field(default_factory=Baselines)
    probed: Probed = field(default_factory=Probed)
    payments: Payments = field(default_factory=Payments)


def example(name: str, *posted: Mapping[str, Any], **needs: Any) -> Example:
    """An example from envelopes as they would be posted; the needs are named as they are here. Its name says why it is clean or flagged."""
    return Example(name, posted, **needs)


def envelope(*, steps: list[dict[str, Any]] | None = None, **overrides: Any) -> dict[str, Any]:
    """An ordinary paid episode of a coding task as it would be posted; each override takes the place of a whole field of the envelope."""
    posted: dict[str, Any] = {
        "id": "run7-s12-g3-0",
        "environment": {"id": "acme/terminal", "version": "2026.11.1"},
        "task": {"id": "fix-nginx"},
        "group": {"id": "run7-s12-g3", "index": 0, "size": 16},
        "run": {"id": "run7", "trainer": "trl", "work": "train", "step": 12, "policy_version": 12},
        "reward": 1.0,
        "termination": {"reason": "submitted", "truncated": False, "timed_out": False},
        "verifier": {"exit_code": 0, "tests": {"collected": 12, "passed": 12, "failed": 0}, "duration_s": 3.1},
        "trajectory": {"schema_version": "ATIF-v1.8", "agent": {"name": "terminus", "version": "2.0"}, "steps": _ordinary_steps() if steps is None else steps},
    }
    return posted | overrides


def _ordinary_steps() -> list[dict[str, Any]]:
    call = {"tool_call_id": "call_1", "function_name": "bash", "arguments": {"command": "sed -i 's/listen 8O/listen 80/' /etc/nginx/nginx.conf && nginx -t"}}
    back = {"source_call_id": "call_1", "content": "nginx: configuration file /etc/nginx/nginx.conf test is successful"}
    return [
        {"step_id": 1, "source": "user", "message": "nginx does not start. Find out why and repair it."},
        {"step_id": 2, "source": "agent", "message": "The port is misspelt.", "tool_calls": [call], "observation": {"results": [back]}},
        {"step_id": 3, "source": "agent", "message": "The letter O stood for a zero in the port; nginx accepts its configuration now."},
    ]
