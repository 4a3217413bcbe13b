"""The decorator that turns a function into a check, and refuses one whose signature breaks the contract."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from inspector.check.examples import Example
from inspector.check.findings import Inconclusive
from inspector.check.subjects import FAST_NEEDS, LATE_NEEDS, SUBJECTS, Baselines, Batch, Group, Probed
from inspector.errors import MisusedCheck, NotAssessed
from inspector.task import Declaration
from inspector.trajectory import Trajectory
from inspector.verdict import Cause, Finding, Tier

Findings = Iterable[Finding] | Iterable[tuple[Trajectory, Finding | NotAssessed | Inconclusive]]


@dataclass(frozen=True, eq=False)
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
        """The whole docstring."""
        return inspect.cleandoc(self.function.__doc__ or "")

    @property
    def digest(self) -> str:
        """Of the parameters: two runs with the same name, version and digest give the same answer."""
        return hashlib.sha256(msgspec.json.encode(dict(sorted(self.parameters.items())))).hexdigest()[:16]

    @property
    def identity(self) -> str:
        """The same for the same code with the same parameters."""
        return f"{self.name}@{self.version}:{self.digest}"

    def __call__(self, *args: Any, **kwargs: Any) -> Findings:
        return self.function(*args, **{**self.parameters, **kwargs})

    def qualified(self, owner: str) -> Check:
        """The same check under its owner's name."""
        return replace(self, name=f"{owner}/{self.function.__name__}")

    def with_parameters(self, **values: Any) -> Check:
        """The same check with other parameters, converted to their annotated types. Raises MisusedCheck naming the parameter."""
        hints = get_type_hints(self.function, include_extras=True)
        label = self.name or self.function.__name__
        for name in values:
            if name not in self.parameters:
                known = ", ".join(self.parameters) or "none"
                raise MisusedCheck(f"{label} has no parameter {name!r}; its parameters are: {known}")
        return replace(self, parameters={**self.parameters, **{name: _converted(f"{label}.{name}", value, hints[name]) for name, value in values.items()}})


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
    positional: list[Any] = []
    parameters: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        kind, label = hints.get(parameter.name), f"{function.__qualname__}.{parameter.name}"
        if kind is None:
            raise MisusedCheck(f"{label} has no annotation")
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise MisusedCheck(f"{label}: write out every argument instead of * or **")
        if parameter.kind is parameter.KEYWORD_ONLY:
            parameters[parameter.name] = _default(label, parameter, kind)
        else:
            positional.append(get_args(kind)[0] if get_origin(kind) is Annotated else kind)
    if not positional or positional[0] not in SUBJECTS:
        raise MisusedCheck(f"{function.__qualname__}: its first argument must be one of {', '.join(s.__name__ for s in SUBJECTS)}")
    return positional[0], tuple(_need(function.__qualname__, positional[0], kind) for kind in positional[1:]), parameters


def _default(label: str, parameter: inspect.Parameter, kind: Any) -> Any:
    if parameter.default is parameter.empty:
        raise MisusedCheck(f"{label}: a parameter needs a default")
    foreign = [bound for bound in get_args(kind)[1:] if get_origin(kind) is Annotated and not isinstance(bound, msgspec.Meta)]
    if foreign:
        raise MisusedCheck(f"{label}: bounds are written as msgspec.Meta(ge=…, le=…); {foreign[0]!r} would not be enforced")
    _converted(label, parameter.default, kind)
    return parameter.default


def _converted(label: str, value: Any, kind: Any) -> Any:
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        raise MisusedCheck(f"{label}={value!r}: {error}") from error


def _need(function: str, subject: type, kind: Any) -> type:
    per_trajectory = get_origin(kind) is Sequence
    need: Any = get_args(kind)[0] if per_trajectory else kind
    if need not in FAST_NEEDS + LATE_NEEDS:
        raise MisusedCheck(f"{function}: nobody provides {kind!r}")
    if per_trajectory != (subject is Batch and need in (Declaration, Baselines, Probed)):
        raise MisusedCheck(f"{function}: only a check of Batch takes Sequence[Declaration], Sequence[Baselines] and Sequence[Probed], and so it takes them")
    kept: type = need
    return kept
