"""Tasks, environments and what their owners declare about them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypeVar

import msgspec

from inspector.errors import NotAssessed


class State(StrEnum):
    """Of a task or an environment version: whether trainers may roll it out and learn from it."""

    ACTIVE = "active"
    WATCH = "watch"  # used as before, audited more
    QUARANTINED = "quarantined"
    PROBATION = "probation"  # used at a reduced sampling weight
    RETIRED = "retired"


_STRICTNESS = (State.ACTIVE, State.WATCH, State.PROBATION, State.QUARANTINED, State.RETIRED)


def stricter(one: State, other: State) -> State:
    """Of two states the one that lets less through."""
    return max(one, other, key=_STRICTNESS.index)


def audit_rate(state: State) -> float:
    """The share of its groups that the service is to be shown: all of what is in doubt. 0 where a trainer's own rate will do."""
    return 0.0 if state in (State.ACTIVE, State.RETIRED) else 1.0


Finite = Annotated[float, msgspec.Meta(ge=-1.7e308, le=1.7e308)]


class RewardDeclaration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the verifier's numbers mean."""

    min: Finite | None = None
    max: Finite | None = None
    paid_at: Finite | None = None  # a reward at or above this counts as paid
    weights: dict[str, Finite] | None = None  # component -> weight in the total
    penalty_min: Finite | None = None  # the lowest value that an override may give, where it is below `min`


class LimitsDeclaration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an episode may use."""

    steps: Annotated[int, msgspec.Meta(ge=1)] | None = None
    seconds: Annotated[float, msgspec.Meta(gt=0)] | None = None


class Declaration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an owner says of an environment version, or of one of its tasks; absent means not declared."""

    reward: RewardDeclaration = RewardDeclaration()
    protected: list[str] | None = None  # globs of paths that the agent must not change
    may_write_tests: bool | None = None
    reference_tests: Annotated[int, msgspec.Meta(ge=0)] | None = None  # tests that the reference solution collects
    limits: LimitsDeclaration = LimitsDeclaration()
    owner: str | None = None
    contact: str | None = None

    @property
    def declared(self) -> bool:
        """Whether anybody declared anything."""
        return self != UNDECLARED

    @property
    def reward_range(self) -> tuple[float, float]:
        """(min, max); raises NotAssessed when either is not declared."""
        low, high = self.reward.min, self.reward.max
        if low is None or high is None:
            raise NotAssessed("declaration: reward.min and reward.max")
        return low, high

    @property
    def weights(self) -> dict[str, float]:
        """Component weights; raises NotAssessed when they are not declared."""
        if self.reward.weights is None:
            raise NotAssessed("declaration: reward.weights")
        return self.reward.weights

    @property
    def collected_by_reference(self) -> int:
        """How many tests the reference collects; raises NotAssessed when it is not declared."""
        if self.reference_tests is None:
            raise NotAssessed("declaration: reference_tests")
        return self.reference_tests

    def pays(self, reward: float | None) -> bool:
        """Whether this reward is pay. Without a declared `paid_at`, anything above 0 is."""
        if reward is None:
            return False
        return reward > 0 if self.reward.paid_at is None else reward >= self.reward.paid_at

    @property
    def reading_of_paid(self) -> str:
        """How `pays` was decided, for the findings that rest on it."""
        if self.reward.paid_at is None:
            return "paid is read as reward > 0, since the environment declares no paid_at"
        return f"paid is reward >= {self.reward.paid_at:g}, as declared"

    def overridden_by(self, other: Declaration) -> Declaration:
        """This declaration with every field that `other` sets put in its place (a task's over its environment's)."""
        return msgspec.structs.replace(
            self,
            reward=_over(self.reward, other.reward),
            limits=_over(self.limits, other.limits),
            **{name: value for name in _FLAT if (value := getattr(other, name)) is not None},
        )


S = TypeVar("S", bound=msgspec.Struct)
_FLAT = ("protected", "may_write_tests", "reference_tests", "owner", "contact")
UNDECLARED = Declaration()


class NamedDeclaration(Declaration, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A declaration in a file: which environment version it speaks of, and its tasks' own."""

    id: str  # team/name
    version: str
    tasks: dict[str, Declaration] = {}


def _over(below: S, above: S) -> S:
    return msgspec.structs.replace(below, **{name: value for name in below.__struct_fields__ if (value := getattr(above, name)) is not None})


def contradictions(declaration: Declaration) -> list[tuple[str, str]]:
    """(path, reason) of every pair of declared values that cannot both hold."""
    reward, found = declaration.reward, []
    if reward.min is not None and reward.max is not None and reward.min > reward.max:
        found.append(("$.reward.min", f"{reward.min:g} is above reward.max {reward.max:g}"))
    if reward.paid_at is not None and reward.max is not None and reward.paid_at > reward.max:
        found.append(("$.reward.paid_at", f"{reward.paid_at:g} is above reward.max {reward.max:g}: nothing could ever be paid"))
    if reward.penalty_min is not None and reward.min is not None and reward.penalty_min > reward.min:
        found.append(("$.reward.penalty_min", f"{reward.penalty_min:g} is above reward.min {reward.min:g}"))
    return found
