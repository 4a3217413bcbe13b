"""The format of a policy file: costs, priors, and the table from findings to verdicts and actions."""

from __future__ import annotations

import re
import tomllib
from enum import StrEnum
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec

from inspector.combine import Beta
from inspector.errors import InspectorError
from inspector.showable import showable
from inspector.verdict import Action, Cause, Tier

Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
Cost = Annotated[float, msgspec.Meta(gt=0, le=1e9)]
NAME_CHARS = 100  # of a check's name in a message


class BadPolicy(InspectorError):
    """A policy file that cannot be used; the message names the file, the path in it and the value."""


class Fixed(StrEnum):
    """What the table says of a finding, whatever its score, or that the probability decides."""

    ACCEPT = "accept"
    FLAG = "flag"
    QUARANTINE = "quarantine"
    BY_PROBABILITY = "by_probability"


class Ruling(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of the table."""

    tier: Tier
    cause: Cause
    verdict: Fixed
    action: Action
    grave: bool = False  # holds only for grave findings, before the line without it
    p_value: bool = False  # holds only for findings with a p-value, before the line without it

    @property
    def quarantines(self) -> bool:
        return self.verdict is Fixed.QUARANTINE

    @property
    def weighs(self) -> bool:
        """Whether its findings enter the probability: a fixed `flag` that keeps is certain of something harmless."""
        return self.action in (Action.EXCLUDE, Action.OVERRIDE_REWARD)

    @property
    def special(self) -> tuple[bool, bool]:
        """What else it asks of a finding than its tier and cause."""
        return (self.grave, self.p_value)


class Costs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a mistake costs, in any one unit; of an action that is right, nothing."""

    miss: Cost  # to learn from a trajectory that is not to be used
    false_quarantine: Cost  # to lose a good one
    false_flag: Cost  # to have a person look at a good one

    def threshold(self, mistaken: float) -> float:
        """The probability from which acting is expected to cost no more than not acting: (1 - p) mistaken <= p miss."""
        return mistaken / (mistaken + self.miss)


class Thresholds(NamedTuple):
    """Of the probability, and of the precision's lower bound that counts as proof."""

    quarantine: float
    flag: float
    proof: float


class Precisions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is believed of a check before there are labels."""

    evidence: Beta
    action: Beta
    text: Beta
    anomaly: Beta  # of any tier


class Believed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is believed of one check, instead of what is believed of any of its kind."""

    precision: Beta | None = None
    recall: Beta | None = None


class PolicyFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A policy as it is written."""

    id: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}\Z")]
    version: Annotated[int, msgspec.Meta(ge=1)]
    prior: Annotated[float, msgspec.Meta(ge=0, lt=1)]
    costs: Costs
    proof: Share
    prior_precision: Precisions = msgspec.field(name="precision")
    prior_recall: Beta = msgspec.field(name="recall")
    retry: tuple[Cause, ...]
    shrinkage: Annotated[float, msgspec.Meta(gt=0, le=1e9)]  # in episodes
    table: tuple[Ruling, ...]
    checks: dict[str, Believed] = {}

    @property
    def thresholds(self) -> Thresholds:
        """As the costs give them."""
        costs = self.costs
        return Thresholds(costs.threshold(costs.false_quarantine), costs.threshold(costs.false_flag), self.proof)


P = TypeVar("P", bound=PolicyFile)


def read(path: Path | None, kind: type[P]) -> P:
    """The policy in that file, or the default one. Raises BadPolicy."""
    source = resources.files("inspector") / "policies" / "default.toml" if path is None else path
    try:
        written = tomllib.loads(source.read_bytes().decode())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadPolicy(f"{source}: {error}") from error
    _read_checks(source, written.get("checks"))
    try:
        policy = msgspec.convert(written, kind)
    except msgspec.ValidationError as error:
        raise BadPolicy(f"{source}: {_with_value(str(error), written)}") from error
    if faults := contradictions(policy):
        raise BadPolicy(f"{source}: " + "; ".join(f"{at}: {why}" for at, why in faults))
    return policy


def _read_checks(source: object, checks: Any) -> None:
    """Each on its own, since msgspec would not say of which check it speaks."""
    for name, written in checks.items() if isinstance(checks, dict) else ():
        try:
            msgspec.convert(written, Believed)
        except msgspec.ValidationError as error:
            said = _with_value(str(error), written)
            where = f'$.checks."{showable(name, limit=NAME_CHARS)}"'
            raise BadPolicy(f"{source}: {said.replace('`$', f'`{where}', 1) if '`$' in said else f'{said} - at `{where}`'}") from error


def contradictions(policy: PolicyFile) -> list[tuple[str, str]]:
    """(path, reason) of everything in it that cannot be meant."""
    found = _of_thresholds(policy)
    for at, ruling in enumerate(policy.table):
        found += [(f"$.table[{at}]", why) for why in _of_ruling(ruling)]
    lines = [(ruling.tier, ruling.cause, ruling.special) for ruling in policy.table]
    found += [("$.table", f"tier {tier}, cause {cause} has no line") for tier, cause in product(Tier, Cause) if (tier, cause, (False, False)) not in lines]
    found += [(f"$.table[{at}]", f"tier {line[0]}, cause {line[1]} has a line already") for at, line in enumerate(lines) if line in lines[:at]]
    return found


def _of_thresholds(policy: PolicyFile) -> list[tuple[str, str]]:
    costs, flag = policy.costs, policy.thresholds.flag
    found = []
    if costs.false_flag > costs.false_quarantine:
        found.append(("$.costs.false_flag", f"{costs.false_flag:g} is above costs.false_quarantine {costs.false_quarantine:g}"))
    if policy.prior >= flag:
        found.append(("$.prior", f"{policy.prior:g} is not below {flag:g}, from which the costs give a flag: every clean trajectory would be flagged"))
    return found


_FOLLOWING = {
    Fixed.ACCEPT: {Action.KEEP},
    Fixed.FLAG: {Action.KEEP, Action.EXCLUDE},
    Fixed.QUARANTINE: {Action.EXCLUDE, Action.OVERRIDE_REWARD},
    Fixed.BY_PROBABILITY: {Action.EXCLUDE, Action.OVERRIDE_REWARD},
}


def _of_ruling(ruling: Ruling) -> list[str]:
    found = []
    if ruling.action not in _FOLLOWING[ruling.verdict]:
        found.append(f"action {ruling.action} does not go with verdict {ruling.verdict}")
    if ruling.quarantines and (ruling.tier is Tier.TEXT or ruling.cause is Cause.ANOMALY):
        found.append(f"verdict quarantine for tier {ruling.tier}, cause {ruling.cause}: neither tier text nor an anomaly quarantines alone")
    if ruling.action is Action.OVERRIDE_REWARD and (ruling.tier is Tier.TEXT or ruling.cause is not Cause.POLICY_EXPLOIT):
        found.append(f"action override_reward for tier {ruling.tier}, cause {ruling.cause}: only a proved policy_exploit loses its reward")
    return found


_PATH = re.compile(r" - at `\$(?P<path>[^`]*)`$")
_STEP = re.compile(r"\.(?P<name>[A-Za-z0-9_-]+)|\[(?P<index>\d+)\]")


def _with_value(message: str, written: Any) -> str:
    """msgspec names the path; the value stands in the file."""
    where = _PATH.search(message)
    for step in _STEP.finditer(where["path"]) if where else ():
        key = step["name"] if step["index"] is None else int(step["index"])
        written = written[key]
    return message if isinstance(written, dict) else f"{message}: {str(written)[:80]!r}"
