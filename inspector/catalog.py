"""Finds every installed check, ours by the same door as strangers': the entry points `inspector.checks`.

An entry point names a package or module; every `Check` written in it, at module level, is collected under
`<entry point>/<function>`, and every rule of a rule pack (`packs/*.yaml` in a package) under `<entry point>/<rule>`.
What cannot be read, or comes twice, is listed with the reason and stops nothing else.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import inspector
from inspector.check import Check
from inspector.errors import InspectorError, MisusedCheck
from inspector.showable import showable
from inspector.signatures import BadPack, Rulebook

GROUP = "inspector.checks"
DISTRIBUTION = "inspector"
OWNER = "builtin"  # of our own checks
PACKAGE = "checks"  # where they are; it lies beside `inspector`, in a checkout as in an installation

_OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_NOTHING, _BY_OWNER, _BY_PATTERN, _BY_NAME = range(4)


class ForeignChecks(InspectorError):
    """The built-in checks are not to be had: without them everything would pass as clean."""


class LeftOut(NamedTuple):
    """Something that was found but is not in the catalogue."""

    name: str  # of an entry point, a module or a check
    reason: str


@dataclass(frozen=True, slots=True)
class Catalog:
    """The installed checks."""

    checks: Mapping[str, Check]  # by qualified name, sorted
    broken: tuple[LeftOut, ...] = ()
    duplicates: tuple[LeftOut, ...] = ()

    def select(self, parameters: Mapping[str, Mapping[str, Any]] | None = None, *, only: Sequence[str] = (), ignore: Sequence[str] = ()) -> tuple[Check, ...]:
        """The checks to run, sorted by name, with their parameters.

        `only` and `ignore` name an owner (`builtin`), a pattern (`builtin/paid_*`) or a check. The more exact one wins, and
        `ignore` where both are as exact. Raises MisusedCheck for what names no check and for a parameter that does not fit.
        """
        for selector in (*only, *ignore):
            self._known(selector, any(_exactness(name, [selector]) for name in self.checks))
        for name in parameters or {}:
            self._known(name, name in self.checks)
        chosen = [check for name, check in self.checks.items() if _chosen(name, only, ignore)]
        return tuple(check.with_parameters(**(parameters or {}).get(check.name, {})) for check in chosen)

    def _known(self, selector: str, known: bool) -> None:
        if not known:
            near = get_close_matches(selector, self.checks, n=1)
            raise MisusedCheck(f"no check is named {selector!r}" + (f"; did you mean {near[0]!r}?" if near else ""))


def _chosen(name: str, only: Sequence[str], ignore: Sequence[str]) -> bool:
    ignored = _exactness(name, ignore)
    return _exactness(name, only) > ignored if only else ignored == _NOTHING


def _exactness(name: str, selectors: Sequence[str]) -> int:
    """How exactly the closest of these selectors names that check."""
    if name in selectors:
        return _BY_NAME
    if any(fnmatchcase(name, selector) for selector in selectors):
        return _BY_PATTERN
    return _BY_OWNER if name.partition("/")[0] in selectors else _NOTHING


# --- loading ---------------------------------------------------------------------------------------------------------


@cache
def load() -> Catalog:
    """What is installed in this process, found once. Raises ForeignChecks where the built-in checks are missing or another package took their place."""
    points = entry_points(group=GROUP)
    if not any(_ours(point) for point in points):
        raise ForeignChecks(f"no installed distribution registers the built-in checks: install {DISTRIBUTION!r} (in a checkout: pip install -e .)")
    return read(points)


def read(points: Iterable[EntryPoint]) -> Catalog:
    """The catalogue of these entry points. Raises ForeignChecks as `load` does."""
    found: dict[str, Check] = {}
    broken: list[LeftOut] = []
    duplicates: list[LeftOut] = []
    rulebook = Rulebook()
    for point in sorted(points, key=lambda point: (not _ours(point), point.name, point.value)):
        for part in _parts(point, rulebook):
            if isinstance(part, LeftOut):
                broken.append(part)
            elif part.name in found:
                kept = found[part.name].function.__module__
                duplicates.append(LeftOut(part.name, f"{part.function.__module__} has one more of that name; the one of {kept} is used"))
            else:
                found[part.name] = part
    for check, reason in rulebook.faults():
        broken.append(LeftOut(showable(check.function.__name__), showable(reason, limit=1000)))
        found = {name: kept for name, kept in found.items() if kept.function is not check.function}
    return Catalog(dict(sorted(found.items())), tuple(broken), tuple(duplicates))


def _parts(point: EntryPoint, rulebook: Rulebook) -> Iterator[Check | LeftOut]:
    """The checks of one entry point, and what of it is broken."""
    if reason := _refusal(point):
        yield LeftOut(showable(point.name), reason)
        return
    for module in _modules(point.module):
        if isinstance(module, LeftOut):
            yield module
        else:
            yield from (check.qualified(point.name) for check in _written_in(module))
            yield from _rules_of(module, point.name, rulebook)


def _rules_of(module: ModuleType, owner: str, rulebook: Rulebook) -> Iterator[Check | LeftOut]:
    """The rules of the packs that lie in the package's folder `packs`."""
    for path in sorted(file for place in getattr(module, "__path__", ()) for file in Path(place, "packs").glob("*.yaml")):
        try:
            yield from (check.qualified(owner) for check in rulebook.read(path))
        except BadPack as error:
            yield LeftOut(showable(f"{module.__name__}/packs/{path.name}"), showable(str(error), limit=4000))


def _refusal(point: EntryPoint) -> str | None:
    value = showable(point.value)
    if _ours(point):
        _must_be_ours()
        return None
    if point.name == OWNER:
        return f"the owner's name {OWNER!r} is kept for the checks of {DISTRIBUTION!r}"
    if not _OWNER.fullmatch(point.name):
        return "an owner's name is 1 to 64 letters, digits, dots, dashes and underscores"
    if point.attr:
        return f"{value!r} names an object; an entry point names the package or module that holds the checks"
    if point.module.partition(".")[0] == PACKAGE:
        return f"{value!r} is in the package of the built-in checks; a package of one's own needs another name"
    return None


def _ours(point: EntryPoint) -> bool:
    return point.dist is not None and point.dist.name == DISTRIBUTION and point.name == OWNER


def _must_be_ours() -> None:
    """Looked up, not imported: a stranger's code of that name must not run."""
    expected = Path(inspector.__file__).resolve().parent.parent / PACKAGE
    try:
        spec = importlib.util.find_spec(PACKAGE)
    except ValueError:  # already imported, by hand
        spec = None
    found = [str(Path(place).resolve()) for place in (spec.submodule_search_locations or [spec.origin or ""])] if spec else []
    if found != [str(expected)]:
        where = ", ".join(found) or "nowhere"
        raise ForeignChecks(f"the package {PACKAGE!r} on the path is not {DISTRIBUTION}'s own: expected at {expected}, found at {where}")


def _modules(name: str) -> Iterator[ModuleType | LeftOut]:
    """The module of that name and all below it, imported."""
    try:
        module = importlib.import_module(name)
    except (Exception, SystemExit) as error:
        yield LeftOut(name, showable(f"cannot be imported: {type(error).__name__}: {error}", limit=1000))
        return
    yield module
    for below in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{name}."):
        if not below.name.endswith(".__main__"):
            yield from _modules(below.name)


def _written_in(module: ModuleType) -> Iterable[Check]:
    """Each check once, and none that was only imported from elsewhere."""
    return dict.fromkeys(value for value in vars(module).values() if isinstance(value, Check) and value.function.__module__ == module.__name__)
