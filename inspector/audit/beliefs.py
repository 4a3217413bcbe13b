"""What audits believe of each check, and of what checks find together: the model of each project, looked after every two seconds."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import NamedTuple

import structlog
from sqlmodel import Session

from inspector.calibration import model
from inspector.calibration.model import BadModel, Model, Stage
from inspector.combine import Beta
from inspector.policy import Calibrated, Policy
from inspector.store import calibrations, selections
from inspector.verdict import Cause, Tier

log = structlog.get_logger()
FRESH_S = 2.0
PROJECTS = 256  # whose models are held at once
ENVIRONMENTS = 1000  # whose probability without findings is kept


@dataclass(frozen=True)
class Belief:
    """The policy with a project's model; verdicts name both."""

    policy: int  # the id of its row
    name: str  # default@1, and the model's digest where there is one
    rules: Policy
    model: Model
    _clean: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)  # by environment: most trajectories are clean

    def precision(self, check: str, version: int, tier: Tier, cause: Cause) -> Beta:
        """Of a check's findings: the policy's prior, and the labels."""
        return self.model.precision(check, version, self.rules.precision(check, version, tier, cause))

    def recall(self, check: str, version: int) -> float:
        """Of a check: the policy's prior, and the labels."""
        return self.model.recall(check, version, self.rules.believed_recall(check)).mean

    def calibrated(self, environment: str) -> Calibrated | None:
        """How findings become a probability there; None where they do as in the policy alone."""
        if self.model.stage is Stage.RAW:
            return None
        return lambda noisy, scores: self.model.probability(noisy, scores, environment)

    def without_findings(self, environment: str) -> float:
        """That a trajectory is not to be used although no check found anything."""
        if self.model.stage is Stage.RAW:
            return self.rules.prior
        known = self._clean.get(environment)
        if known is None:
            known = self.model.probability(self.rules.prior, {}, environment)
            if len(self._clean) < ENVIRONMENTS:
                self._clean[environment] = known
        return known


class _Held(NamedTuple):
    version: int | None
    belief: Belief
    until: float


class Beliefs:
    """The models of this process."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._held: dict[int, _Held] = {}

    def of(self, session: Session, project: int) -> Belief:
        """What holds in a project."""
        held = self._held.get(project)
        if held is None or held.until < time.monotonic():
            held = self._held[project] = self._look(session, project, held)
            while len(self._held) > PROJECTS:
                del self._held[next(iter(self._held))]
        return held.belief

    def _look(self, session: Session, project: int, held: _Held | None) -> _Held:
        latest = calibrations.latest(session, project)
        version = None if latest is None or latest.policy != self._policy.digest else latest.version
        until = time.monotonic() + FRESH_S
        if held is not None and held.version == version:
            return held._replace(until=until)
        read = None if version is None else read_model(session, project, version)
        if read is None:
            row = selections.policy(session, self._policy.name, self._policy.digest.encode())
            return _Held(version, Belief(row, self._policy.name, self._policy, Model(policy=self._policy.digest)), until)
        digest = model.digest(read.packed()).hex()[:16]
        name = f"{self._policy.name}+{digest[:8]}"
        row = selections.policy(session, name, f"{self._policy.digest}+{digest}".encode())
        return _Held(version, Belief(row, name, self._policy, read), until)


def read_model(session: Session, project: int, version: int) -> Model | None:
    """A stored model; None where it is gone or damaged, which is logged."""
    body = calibrations.body(session, project, version)
    try:
        return None if body is None else model.unpack(body)
    except BadModel as error:
        log.error("damaged calibration", project=project, version=version, reason=str(error))
        return None
