"""The contract for checks: one function, whose signature says what it inspects and what it needs.

The first argument is the subject, annotated with its kind; the next ones are needs, annotated with theirs; keyword-only
ones are typed parameters with defaults. The decorator carries version, tier, cause and examples; the docstring is what
reviewers read. A check of `Trajectory` yields findings; a check of `Batch` yields (trajectory, finding) pairs, which lets
models and signatures look at many at once. A check that cannot judge raises `NotAssessed(need)` or `Inconclusive(why)`.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from inspector.errors import InspectorError, MisusedCheck, NotAssessed
from inspector.task import Declaration
from inspector.trajectory import Trajectory
from inspector.verdict import Cause, Finding, Span, Tier

__all__ = [
    "Baselines",
    "Batch",
    "Cause",
    "Check",
    "Declaration",
    "Example",
    "Finding",
    "Group",
    "History",
    "Inconclusive",
    "NotAssessed",
    "Span",
    "Tier",
    "Trajectory",
    "check",
    "example",
]


class Inconclusive(InspectorError):
    """Raised by a check that looked and could not tell."""


# --- subjects --------------------------------------------------------------------------------------------------------


class Batch(Sequence[Trajectory]):
    """Trajectories inspected together for speed; a check must judge each as if it were alone."""

    def __init__(self, trajectories: Sequence[Trajectory]) -> None:
        self._trajectories = trajectories

    def __getitem__(self, at: Any) -> Any:
        return self._trajectories[at]

    def __len__(self) -> int:
        return len(self._trajectories)


@dataclass(frozen=True, slots=True)
class Group:
    """The rollouts of one task under one policy version, once all have come or nothing came for a while."""

    id: str
    trajectories: Sequence[Trajectory]
    complete: bool = True  # False when it was closed because nothing came any more


# --- needs -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Twin:
    """An earlier trajectory with the same steps under another id."""

    id: str
    reward: float | None


class History:
    """What the project posted before, as far as checks may ask. The engine fills it once for a whole block."""

    def __init__(self, twins: Mapping[str, Sequence[Twin]] | None = None, tasks_of_group: Mapping[str, Sequence[str]] | None = None) -> None:
        self._twins = twins or {}
        self._tasks = tasks_of_group or {}

    def twins(self, trajectory: Trajectory) -> Sequence[Twin]:
        """Trajectories of the same environment version and task whose steps are the same but for ids and times."""
        return self._twins.get(trajectory.id, ())

    def tasks_of_group(self, trajectory: Trajectory) -> Sequence[str]:
        """Every task id that was posted under this trajectory's group id, in the same run."""
        return self._tasks.get(trajectory.id, ())


class Baselines:
    """What is normal for an environment version in this project; empty where nothing was learnt yet."""

    def __init__(self, models: Mapping[str, Any] | None = None) -> None:
        self._models = models or {}

    def model(self, name: str) -> Any:
        """The fitted model of that name; raises NotAssessed where there is none yet."""
        if name not in self._models:
            raise NotAssessed(f"baselines: {name}")
        return self._models[name]


class Sandbox:
    """A place to run foreign code; the need for it puts a check in the late lane."""


class Judge:
    """A model that reads transcripts; the need for it puts a check in the late lane."""


SUBJECTS: tuple[type, ...] = (Trajectory, Batch, Group)
FAST_NEEDS: tuple[type, ...] = (Declaration, Baselines, History)
LATE_NEEDS: tuple[type, ...] = (Sandbox, Judge)

# --- examples --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Example:
    """A subject with what it needs, for a check's documentation and its tests."""

    name: str
    posted: tuple[Mapping[str, Any], ...]  # envelopes as they would be posted; one for a trajectory, several for a group
    declaration: Mapping[str, Any] = field(default_factory=dict)
    history: History = field(default_factory=History)
    baselines: Baselines = field(default_factory=Baselines)


def example(name: str, *posted: Mapping[str, Any], **needs: Any) -> Example:
    """An example from envelopes as they would be posted; needs are declaration, history and baselines."""
    return Example(name, posted, **needs)


# --- the decorator ---------------------------------------------------------------------------------------------------

Findings = Iterable[Finding] | Iterable[tuple[Trajectory, Finding]]


@dataclass(frozen=True)
class Check:
    """A check as it is registered; calling it calls the function."""

    function: Callable[..., Findings]
    version: int
    tier: Tier
    cause: Cause
    subject: type
    needs: tuple[type, ...]
    parameters: Mapping[str, Any]
    clean: tuple[Example, ...]
    flagged: tuple[Example, ...]
    name: str = ""  # qualified by who installed it, as `builtin/paid_despite_failing_tests`

    @property
    def late(self) -> bool:
        """Whether it runs after the provisional decision: it needs a sandbox, a judge or a whole group."""
        return self.subject is Group or any(need in LATE_NEEDS for need in self.needs)

    @property
    def title(self) -> str:
        """The first line of the docstring."""
        return self.description.splitlines()[0]

    @property
    def description(self) -> str:
        return inspect.cleandoc(self.function.__doc__ or "")

    @property
    def digest(self) -> str:
        """Of the parameters: two runs with the same name, version and digest give the same answer."""
        return hashlib.sha256(msgspec.json.encode(dict(sorted(self.parameters.items())))).hexdigest()[:16]

    def __call__(self, *args: Any, **kwargs: Any) -> Findings:
        return self.function(*args, **kwargs)

    def qualified(self, owner: str) -> Check:
        """The same check under its owner's name."""
        return replace(self, name=f"{owner}/{self.function.__name__}")

    def with_parameters(self, **values: Any) -> Check:
        """The same check with other parameters, converted to their annotated types. Raises MisusedCheck naming the parameter."""
        hints = get_type_hints(self.function, include_extras=True)
        converted = dict(self.parameters)
        for name, value in values.items():
            if name not in self.parameters:
                raise MisusedCheck(f"{self.name or self.function.__name__} has no parameter {name!r}")
            try:
                converted[name] = msgspec.convert(value, hints[name], strict=False)
            except msgspec.ValidationError as error:
                raise MisusedCheck(f"{self.name}.{name}={value!r}: {error}") from error
        return replace(self, parameters=converted)


F = TypeVar("F", bound=Callable[..., Any])


def check(*, version: int, tier: Tier, cause: Cause, clean: Sequence[Example] = (), flagged: Sequence[Example] = ()) -> Callable[[F], Check]:
    """Mark a function as a check. Raises MisusedCheck, at import, where the signature breaks the contract."""

    def mark(function: F) -> Check:
        subject, needs, parameters = _signature(function)
        if not (function.__doc__ or "").strip():
            raise MisusedCheck(f"{function.__qualname__} has no docstring: it is what reviewers read")
        if version < 1:
            raise MisusedCheck(f"{function.__qualname__}: version {version} is not 1 or more")
        return Check(function, version, tier, cause, subject, needs, parameters, tuple(clean), tuple(flagged))

    return mark


def _signature(function: Callable[..., Any]) -> tuple[type, tuple[type, ...], dict[str, Any]]:
    hints = get_type_hints(function, include_extras=True)
    positional, parameters = [], {}
    for parameter in inspect.signature(function).parameters.values():
        kind = hints.get(parameter.name)
        if kind is None:
            raise MisusedCheck(f"{function.__qualname__}: {parameter.name} has no annotation")
        if parameter.kind is parameter.KEYWORD_ONLY:
            if parameter.default is parameter.empty:
                raise MisusedCheck(f"{function.__qualname__}: parameter {parameter.name} has no default")
            parameters[parameter.name] = parameter.default
        else:
            positional.append(get_args(kind)[0] if get_origin(kind) is Annotated else kind)
    if not positional or positional[0] not in SUBJECTS:
        raise MisusedCheck(f"{function.__qualname__}: its first argument must be one of {', '.join(s.__name__ for s in SUBJECTS)}")
    for need in positional[1:]:
        if need not in FAST_NEEDS + LATE_NEEDS:
            raise MisusedCheck(f"{function.__qualname__}: nobody provides {need!r}")
    return positional[0], tuple(positional[1:]), parameters
