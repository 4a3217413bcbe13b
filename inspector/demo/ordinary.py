"""Ordinary episodes of one environment, made from a seed: what the demo's service learns from before it judges the bundled ones."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

COUNT = 1560  # what a first model needs, and a little more
ENVIRONMENT = {"id": "tally/ledgers", "version": "2026.10"}
_BEGAN = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)
_TASKS = ("close-october", "match-invoices", "find-transposition", "accrue-rent", "reconcile-bank", "split-freight")
_ACCOUNTS = ("1000 cash", "1200 receivables", "1400 stock", "2100 payables", "4000 sales", "5000 freight", "5200 rent", "6100 travel")
_REMARKS = ("That leaves", "Next is", "I compare it with", "The difference points at", "Both sides agree but for", "Nothing is open on")


def ordinary(count: int = COUNT, seed: int = 41, name: str = "tally-past") -> Iterator[bytes]:
    """So many lines as they would be posted; the same each time."""
    made = random.Random(seed)  # noqa: S311  (no secret)
    return (json.dumps(episode(made, f"{name}-{at:05}", at)).encode() for at in range(count))


def episode(made: random.Random, id_: str, at: int) -> dict[str, Any]:
    """A bookkeeper looks into accounts, posts entries and checks the balance; two thirds succeed."""
    task, paid = made.choice(_TASKS), made.random() < 0.67
    began = _BEGAN + timedelta(minutes=at)
    steps = [{"step_id": 1, "source": "user", "message": f"Task {task}: the books of {made.randint(2, 400)} Mill Lane. {_asked(made)}"}]
    for turn in range(max(3, round(made.lognormvariate(1.9, 0.3)))):
        steps.append(_turn(made, turn + 2))
    steps.append({"step_id": len(steps) + 1, "source": "agent", "message": _report(made, paid=paid), "metrics": _tokens(made, len(steps), 60)})
    took = sum(made.lognormvariate(1.6, 0.35) for _ in steps)
    return {
        "id": id_,
        "environment": ENVIRONMENT,
        "task": {"id": task},
        "run": {"id": "tally-ppo-3", "trainer": "trl", "work": "train", "step": at // 64, "policy_version": at // 64},
        "reward": 1.0 if paid else 0.0,
        "termination": {"reason": "submitted", "truncated": False, "timed_out": False},
        "verifier": _verified(made, paid=paid),
        "started_at": began.isoformat(),
        "ended_at": (began + timedelta(seconds=took)).isoformat(),
        "trajectory": {"schema_version": "ATIF-v1.8", "agent": {"name": "tally-clerk", "version": "1.4.0"}, "steps": steps},
    }


def _asked(made: random.Random) -> str:
    return "Report what you changed. " * made.randint(1, 3) + f"The period ends on the {made.randint(1, 28)}th."


def _turn(made: random.Random, number: int) -> dict[str, Any]:
    account = made.choice(_ACCOUNTS)
    if made.random() < 0.6:
        name, arguments = "read_account", {"account": account, "from": made.randint(1, 9000), "rows": made.randint(4, 20)}
        seen = "\n".join(f"{made.randint(1, 28):02}.10. {made.choice(_ACCOUNTS)} {made.uniform(5, 4000):.2f}" for _ in range(made.randint(3, 14)))
    else:
        name, arguments = "post_entry", {"debit": account, "credit": made.choice(_ACCOUNTS), "amount": round(made.uniform(5, 4000), 2)}
        seen = f"entry {made.randint(10_000, 99_999)} posted" if made.random() < 0.9 else "Error: the period of this entry is closed"
    call = {"tool_call_id": f"call_{number}", "function_name": name, "arguments": arguments}
    return {
        "step_id": number,
        "source": "agent",
        "message": f"{made.choice(_REMARKS)} {account}." if made.random() < 0.7 else "",
        "tool_calls": [call],
        "observation": {"results": [{"source_call_id": call["tool_call_id"], "content": seen}]},
        "metrics": _tokens(made, number, 40),
    }


def _report(made: random.Random, *, paid: bool) -> str:
    said = " ".join(f"{made.choice(_REMARKS)} {made.choice(_ACCOUNTS)}." for _ in range(made.randint(1, 4)))
    return f"{said} The books {'balance' if paid else 'do not balance yet'}, {made.uniform(0, 900):.2f} on both sides."


def _tokens(made: random.Random, number: int, written: int) -> dict[str, int]:
    return {"prompt_tokens": 240 + number * made.randint(60, 110), "completion_tokens": round(made.lognormvariate(0, 0.3) * written)}


def _verified(made: random.Random, *, paid: bool) -> dict[str, Any]:
    failed = 0 if paid else made.randint(1, 5)
    tests = {"collected": 9, "passed": 9 - failed, "failed": failed}
    return {"exit_code": int(not paid), "tests": tests, "duration_s": round(made.lognormvariate(0.7, 0.25), 2)}
