"""Environment versions and their probes at a served API: registered by an owner, worked off with a prober's key."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from inspector.probe.words import Evidence, Family, Hint, Outcome, Run, TaskReport
from tests.dashboard.house import Served

TAR = b"a tar"
SHA256 = hashlib.sha256(TAR).hexdigest()
Outcomes = Mapping[str, tuple[Outcome, ...]]


def register(served: Served, version: str, environment: str = "acme/rows") -> None:
    """Make a version of which probes can be asked for."""
    with served.api() as api:
        api.upload(f"/v1/artifacts/{SHA256}", [TAR])
        api.put(f"/v1/environments/{environment}/versions/{version}/package", {"artifact": SHA256, "face": "rows"})


def start(served: Served, version: str, environment: str = "acme/rows") -> str:
    """Ask for a probe."""
    with served.api() as api:
        return str(api.start_probe(environment, version, {"priority": "live"})["id"])


def work(served: Served, outcomes: Outcomes, *, most: int = 1_000, text: str = "It pays for nothing.") -> None:
    """List these tasks, and report of at most so many what is given for them."""
    with served.api("prober") as api:
        for _ in range(most + 1):
            held = api.post("/v1/probe-work")
            if held is None:
                return
            said: dict[str, Any] = {"task": msgspec.to_builtins(report(held["task"], outcomes[held["task"]], text))} if held["task"] else listing(outcomes)
            api.post(f"/v1/probe-work/{held['work']}/report", said, lease=held["lease"])


def listing(outcomes: Outcomes) -> dict[str, Any]:
    hint = Hint(rule="shell.swallowed", path="add/tests/test.sh", line=3, message="`|| true` hides a failure")
    return {"listing": {"content_version": "c" * 64, "verifier_digest": "d" * 64, "tasks": list(outcomes), "hints": [msgspec.to_builtins(hint)]}}


def report(task: str, outcomes: tuple[Outcome, ...], text: str) -> TaskReport:
    faults = [outcome for outcome in outcomes if outcome is not Outcome.SOUND]
    evidence = [
        Evidence(outcome=one, probe=f"p/{one}", claim=text, proof=f"return {text}", reproduce=f"inspector probe rows.jsonl --only p/{one}") for one in faults
    ]
    runs = [Run(probe="reference", family=Family.REFERENCE, reward=1.0, paid=True, cpu_s=0.1)]
    return TaskReport(task=task, outcomes=outcomes, evidence=evidence, notes=(text,), runs=runs, cpu_s=1.5, wall_s=2.0, reproduce="inspector probe rows.jsonl")
