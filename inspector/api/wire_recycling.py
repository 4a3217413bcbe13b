"""What is asked and answered about trajectories that may be learnt from after all."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import msgspec

from inspector.api.wire import Request
from inspector.trajectory import Identifier
from inspector.verdict import Action


class RegradeRequest(Request, frozen=True, kw_only=True):
    """The verifier of this version is repaired in the version `by`, whose tasks ask for the same."""

    by: Identifier
    most: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 10_000  # states that may be graded


class RegradeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """It will be done, after what is more urgent."""

    regrade: int
    environment: str
    version: str
    by: str
    most: int


class RecycledLine(msgspec.Struct, frozen=True, kw_only=True):
    """A trajectory that was out and may be taken up again."""

    id: str
    key: UUID
    group: str | None
    environment: str
    version: str
    task: str
    posted: float | None  # the reward as it was posted
    reward: float  # the one to use
    policy_version: int | None  # that made it
    staleness: int | None  # how many versions ago that was
    action: Action  # override_reward where the reward is another one now
    seq: int  # of the decision that gave it back


class RecycledPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page, in the order in which they were given back."""

    run: str
    policy_version: int | None  # the newest of the run
    trajectories: list[RecycledLine]
    next: str | None
