"""Short trajectories that differ from each other, alone and in groups, of which some must be excluded."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

GROUP = 4
WORDS = (
    "the port",
    "was read",
    "from a file",
    "that no test",
    "had written",
    "before",
    "so we",
    "looked at",
    "its owner",
    "and mode",
    "then tried",
    "once more",
)
FAILED = {"exit_code": 1, "tests": {"collected": 12, "passed": 9, "failed": 3}}
PASSED = {"exit_code": 0, "tests": {"collected": 12, "passed": 12, "failed": 0}}


class Episode(NamedTuple):
    """A line to be posted, and what is to become of it."""

    id: str
    line: bytes
    excluded: bool


def batches(rng: random.Random, name: str) -> Iterator[list[Episode]]:
    """Bodies of 12 to 60 lines without end, each with whole groups only."""
    number = 0
    while True:
        count = rng.randint(3, 15)
        yield [episode for at in range(number, number + count) for episode in _four(rng, f"{name}-{at}")]
        number += count


def _four(rng: random.Random, name: str) -> list[Episode]:
    """One group, or four that have nothing to do with each other."""
    grouped = rng.random() < 0.4
    faulty = [rng.random() < 0.15 for _ in range(GROUP)]
    all_out = grouped and GROUP - sum(faulty) < 2
    envelopes = [_envelope(rng, f"{name}-{at}", bad) for at, bad in enumerate(faulty)]
    if grouped:
        for at, envelope in enumerate(envelopes):
            envelope["group"] = {"id": name, "index": at, "size": GROUP}
            envelope["task"] = envelopes[0]["task"]
    return [Episode(e["id"], json.dumps(e).encode(), bad or all_out) for e, bad in zip(envelopes, faulty, strict=True)]


def _envelope(rng: random.Random, id_: str, bad: bool) -> dict[str, Any]:
    steps = [
        {"step_id": 1, "source": "user", "message": f"Repair {id_}."},
        {"step_id": 2, "source": "agent", "message": " ".join(rng.choices(WORDS, k=rng.randint(10, 130)))},
    ]
    return {
        "id": id_,
        "environment": {"id": "acme/terminal", "version": f"1.{rng.randint(0, 3)}"},
        "task": {"id": f"task-{rng.randint(0, 40)}"},
        "run": {"id": "run7", "trainer": "trl", "work": "train", "step": 12, "policy_version": 12},
        "reward": 1.0,
        "verifier": FAILED if bad else PASSED,
        "trajectory": {"schema_version": "ATIF-v1.8", "agent": {"name": "terminus", "version": "2.0"}, "steps": steps},
    }
