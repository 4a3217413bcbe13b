"""What a trajectory looks like to the peers: pydantic models, unknown fields kept."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    model_config = ConfigDict(extra="allow")


class Environment(Model):
    id: str
    version: str


class Task(Model):
    id: str


class Group(Model):
    id: str
    index: int | None = None
    size: int | None = None


class Run(Model):
    id: str
    trainer: str | None = None
    work: str = "train"
    step: int | None = None
    policy_version: int | None = None


class Termination(Model):
    reason: str | None = None
    truncated: bool | None = None
    timed_out: bool | None = None


class Verifier(Model):
    exit_code: int | None = None
    tests: dict[str, int | None] | None = None
    stdout: str | None = None
    duration_s: float | None = None


class ToolCall(Model):
    tool_call_id: str
    function_name: str
    arguments: dict[str, Any]


class Result(Model):
    source_call_id: str | None = None
    content: str | None = None


class Observation(Model):
    results: list[Result]


class Step(Model):
    step_id: int
    source: str
    message: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None
    observation: Observation | None = None
    metrics: dict[str, Any] | None = None


class Document(Model):
    schema_version: str | None = None
    agent: dict[str, Any] | None = None
    steps: list[Step]


class Posted(Model):
    id: str
    environment: Environment
    task: Task
    reward: float | None
    trajectory: Document
    group: Group | None = None
    run: Run | None = None
    termination: Termination | None = None
    verifier: Verifier | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
