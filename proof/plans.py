"""What is trained, and what came of it: the words between the proof and its training processes."""

from __future__ import annotations

from typing import Any

import msgspec

GROUP = 16
RATE = 3e-3


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """One environment version of a run."""

    id: str = "toy/say-digit"
    version: str
    fault: str = "says_pass"  # says_pass | second | none
    dies: float = 0.0  # share of the episodes whose sandbox dies
    rows: int = 512


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One training run; without `url` nothing of the service is in the loop."""

    run: str
    seed: int
    environments: list[Environment]
    steps: int = 300
    batch: int = 128
    url: str = ""
    key: str = ""
    owner_key: str = ""
    enforce_at: int = 0  # the step after which the run is put in enforce by the run itself; 0: it is from the beginning
    audit_rate: float = 1.0
    save_steps: int = 0
    resume: bool = False
    rollbacks: int = 0
    deadline_s: float = 2.0
    pulse: str = ""  # a file that holds the newest step


class Step(msgspec.Struct, frozen=True):
    """Shares of a batch, as sampled."""

    hack: float
    true: float


class Told(msgspec.Struct, kw_only=True):
    """What came of a run: greedy answers at its end, and its curves."""

    true: float = 0.0
    hack: float = 0.0
    steps: list[Step] = []
    excluded: list[float] = []
    unaudited: list[float] = []
    wait_ms: list[float] = []
    rollbacks: int = 0
    stats: dict[str, Any] = {}
