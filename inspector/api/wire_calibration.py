"""What answers about calibration, and about what chance picked for people, look like."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import msgspec

from inspector.calibration.model import Measured
from inspector.policy_file import Costs


class BelievedShare(msgspec.Struct, frozen=True, kw_only=True):
    """A share as it is believed now, the policy's prior and the labels together."""

    mean: float
    lower: float  # the 5 % quantile


class CheckBelief(msgspec.Struct, frozen=True, kw_only=True):
    """How good one check is; counts of labels are effective ones, which unequal weights make fewer than there are."""

    check: str
    version: int
    tier: str | None  # None where it is no longer installed
    cause: str | None
    labels: int  # in which it found something, by plain count
    right: float
    wrong: float
    caught: float
    missed: float  # faults of its cause that no check of it saw
    precision: BelievedShare | None
    recall: BelievedShare
    proves: bool  # an exploit that it finds loses its reward without facts


class ThresholdsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Of the probability, as the costs give them, and of a precision's lower bound."""

    quarantine: float
    flag: float
    proof: float


class CalibrationAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How findings become a probability in this project, and whether it means what it says."""

    policy: str
    thresholds: ThresholdsAnswer
    costs: Costs
    version: int | None  # of the model; None where nothing was learnt yet
    digest: str | None  # verdicts that rest on it name the first eight characters
    stage: str  # raw, platt, logistic
    labels: int
    positives: int
    why: str | None  # it holds
    fitted_at: datetime | None
    measured: Measured | None  # on labels held out of the fit
    checks: list[CheckBelief]


class SpotCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A trajectory to look at; what the checks say of it is not told, so that it sways nobody."""

    key: UUID
    id: str
    environment: str
    version: str
    task: str
    run: str | None
    reward: float | None


class SpotChecks(msgspec.Struct, frozen=True, kw_only=True):
    """What chance picked and nobody looked at, in the order in which it should be looked at."""

    spot_checks: list[SpotCheck]
