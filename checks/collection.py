"""The verifier gave nothing because its tests could not run, and the policy had no part in that."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from checks.verifier_evidence import did_not_run, evidence
from inspector.actions import CHANGES, Kind, actions
from inspector.check import Cause, Declaration, Finding, Inconclusive, Tier, Trajectory, check, envelope, example
from inspector.step_texts import plain
from inspector.trajectory import VerifierReport

TAIL_CHARS = 8192
NOT_STARTED = {126: "not allowed to run", 127: "no such command"}
_MISSING = re.compile(r"No module named '?([A-Za-z_]\w*)")
_MACHINE = re.compile(
    r"No space left on device|Cannot allocate memory|Read-only file system|Too many open files|(?:pytest|python3?|node|npm|go|cargo)\d*: (?:command )?not found"
)
_ABLE = re.compile(r"\b(?:dd|fallocate|truncate|yes|ulimit|mount|chmod|chattr|chown|rm|mv|ln|unlink|PATH|alias)\b|/dev/(?:zero|u?random)")

_MODULE = "ERROR tests/test_a.py\nE   ModuleNotFoundError: No module named 'numpy'\n=== 1 error in 0.12s ===\n"
_BROKEN = "ERROR tests/test_a.py\nE   SyntaxError: invalid syntax\n=== 1 error in 0.12s ===\n"


def _unpaid(stdout: str, exit_code: int = 2, reward: float | None = 0.0, **overrides: Any) -> dict[str, Any]:
    return envelope(reward=reward, verifier={"exit_code": exit_code, "stdout": stdout}, **overrides)


def _wrote(path: str, content: str) -> list[dict[str, Any]]:
    call = {"tool_call_id": "c", "function_name": "write_file", "arguments": {"path": path, "content": content}}
    return [{"step_id": 1, "source": "user", "message": "Mend it."}, {"step_id": 2, "source": "agent", "message": "", "tool_calls": [call]}]


@check(
    version=1,
    tier=Tier.EVIDENCE,
    cause=Cause.VERIFIER_DEFECT,
    clean=[
        example("tests ran and failed", _unpaid("=== 1 failed, 2 passed in 0.12s ===\n", exit_code=1)),
        example("paid for nothing is another check's matter", _unpaid(_MODULE, reward=1.0)),
        example("not scored is the right answer", _unpaid(_MODULE, reward=None)),
    ],
    flagged=[
        example("a module is missing that the agent never touched", _unpaid(_MODULE, steps=_wrote("app.py", "def f(): ..."))),
        example("the verifier's disk is full", _unpaid("OSError: [Errno 28] No space left on device\n", steps=_wrote("app.py", "def f(): ..."))),
        example("it changed nothing, and nothing could be collected", _unpaid(_BROKEN, steps=[{"step_id": 1, "source": "agent", "message": "I looked."}])),
    ],
)
def unpaid_although_tests_could_not_run(trajectory: Trajectory, declaration: Declaration) -> Iterator[Finding]:
    """The reward is nothing, but no test was run, and what kept them from running is not the agent's doing.

    Nobody looked at the work, and the policy is punished for the verifier. Where the agent changed files and the log does
    not say what was wrong, its own work may have broken the collection, and a full disk or a missing program may be its doing
    where it ran what fills disks or takes programs away: then it cannot be told.
    """
    if trajectory.reward is None or not (trajectory.reward == 0 or trajectory.reward == declaration.reward.min):
        return
    report, summary = evidence(trajectory)
    if not (reason := did_not_run(report, summary) or _not_started(report)):
        return
    cause = _not_its_doing(trajectory, (report.stdout or "")[-TAIL_CHARS:])
    if cause is None:
        raise Inconclusive(f"{reason}, and what the agent did may have caused it")
    yield Finding(message=f"the reward is {trajectory.reward:g} although {reason}: {cause}")


def _not_started(report: VerifierReport) -> str | None:
    return f"it ended with exit code {report.exit_code}, in shells: {NOT_STARTED[report.exit_code]}" if report.exit_code in NOT_STARTED else None


def _not_its_doing(trajectory: Trajectory, log: str) -> str | None:
    if (found := _MACHINE.search(log)) and not _called(trajectory, _ABLE.search):
        return f"the verifier's log says {found[0]!r}"
    missing = _MISSING.search(log)
    if missing and not _called(trajectory, lambda text: missing[1] in text):
        return f"the module {missing[1]!r} is missing there, and the agent never touched it"
    did = actions(trajectory)
    if not missing and not did.unread and not any(True for _ in did.of(*CHANGES, Kind.TOOL)):
        return "the agent changed no file"
    return None


def _called(trajectory: Trajectory, found_in: Callable[[str], object]) -> bool:
    """Whether it is found in an argument of any call of a tool."""
    return any(found_in(plain(value)) for _, step in trajectory.own_steps for call in step.tool_calls or () for value in call.arguments.values())
