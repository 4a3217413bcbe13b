"""The service that the proof runs against, and the training processes beside it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from inspector.client import Api
from inspector.embedded import Stack
from inspector.settings import Settings
from proof.plans import Environment, Plan, Told
from proof.relay import Relay

PARTS = ("postgres", "redis", "migrations", "keys", "api", "worker", "beat")
LONGEST_S = 1800.0  # of one training run
DECLARED = {"reward": {"min": 0, "max": 1, "paid_at": 1, "penalty_min": -1}}


class House:
    """One embedded service; every run has environment versions of its own, so that none learns from another."""

    def __init__(self, folder: Path, settings: Settings | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.stack = Stack(folder / "data", parts=PARTS, settings=settings)

    def __enter__(self) -> House:
        self.stack.start()
        self.relay = Relay(self.stack.settings.port)
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.stop()

    def declare(self, environments: list[Environment]) -> None:
        """Their reward range, with a penalty, as their owner would."""
        with Api(self.stack.api_url, self.stack.keys["owner"]) as api:
            for one in environments:
                api.put(f"/v1/environments/{one.id}/versions/{one.version}", DECLARED)

    def enforce(self, run: str) -> None:
        with Api(self.stack.api_url, self.stack.keys["owner"]) as api:
            api.put(f"/v1/runs/{run}", {"mode": "enforce"})

    def begin(self, plan: Plan, *, gate: bool) -> Training:
        """Start a run, behind the gate or without anything of ours."""
        plan = msgspec.structs.replace(plan, pulse=str(self.folder / f"{plan.run}.pulse"))
        if gate:
            self.declare(plan.environments)
            if not plan.enforce_at:
                self.enforce(plan.run)
            plan = msgspec.structs.replace(plan, url=self.relay.url, key=self.stack.keys["trainer"], owner_key=self.stack.keys["owner"])
        return Training(self.folder, plan)

    def train(self, plan: Plan, *, gate: bool) -> Told:
        """A whole run."""
        return self.begin(plan, gate=gate).told()


class Training:
    """A training process."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.plan, self._path = plan, folder / f"{plan.run}.json"
        self._pulse = Path(plan.pulse)
        self._pulse.unlink(missing_ok=True)
        self._path.write_bytes(msgspec.json.encode(plan))
        self._log = (folder / f"{plan.run}.log").open("ab")
        self.process = subprocess.Popen([sys.executable, "-m", "proof.training", str(self._path)], stdout=self._log, stderr=self._log)

    @property
    def step(self) -> int:
        """The newest that was done."""
        text = self._pulse.read_text() if self._pulse.exists() else ""
        return int(text or 0)

    def until(self, step: int, then: Callable[[], object]) -> None:
        """Wait for a step, and do something; raises where the process ends before."""
        end = time.monotonic() + LONGEST_S
        while self.step < step:
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{self.plan.run} ended with {self.process.poll()} before step {step}: {self._path.with_suffix('.log')}")
            time.sleep(0.05)
        then()

    def kill(self) -> None:
        """As a machine that goes away."""
        self.process.kill()
        self.process.wait()

    def told(self) -> Told:
        """What came of it; raises where it failed."""
        try:
            code = self.process.wait(LONGEST_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        finally:
            self._log.close()
        if code:
            raise RuntimeError(f"{self.plan.run} ended with {code}: {self._path.with_suffix('.log').read_text()[-2000:]}")
        return msgspec.json.decode(self._path.with_suffix(".told.json").read_bytes(), type=Told)
