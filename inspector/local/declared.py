"""What owners say of their environments, read from YAML or JSON files."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from reprlib import Repr
from typing import Any

import msgspec
import yaml

from inspector.errors import InspectorError
from inspector.showable import showable
from inspector.task import UNDECLARED, Declaration, NamedDeclaration, contradictions

FILE_BYTES = 16 << 20
_NAME = re.compile(r"[^/\s]+/[^/\s]+")
_AT = re.compile(r"(?s)(.*) - at (?:`key` in )?`\$(.*)`\Z")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[\.\.\.\]")
_short = Repr()
_short.maxlevel, _short.maxstring, _short.maxother = 2, 80, 80


class BadDeclaration(InspectorError):
    """A file of declarations that cannot be used; the message names the file, the path in it and the value."""


class Declared:
    """The declarations of some files, by environment version."""

    def __init__(self, named: Iterable[NamedDeclaration] = ()) -> None:
        self.named: Mapping[tuple[str, str], NamedDeclaration] = {(one.id, one.version): one for one in named}
        self._merged: dict[tuple[str, str, str], Declaration] = {}

    def of(self, environment: str, version: str, task: str) -> Declaration:
        """What holds for a task: its own declaration over its environment version's."""
        place = (environment, version, task)
        if place not in self._merged:
            one = self.named.get((environment, version))
            self._merged[place] = UNDECLARED if one is None else _plain(one).overridden_by(one.tasks.get(task, UNDECLARED))
        return self._merged[place]

    @property
    def only(self) -> NamedDeclaration | None:
        """The declaration, where there is exactly one."""
        return next(iter(self.named.values())) if len(self.named) == 1 else None


def read(paths: Sequence[Path]) -> Declared:
    """All declarations of these files. Raises BadDeclaration."""
    found: dict[tuple[str, str], tuple[Path, NamedDeclaration]] = {}
    for path in paths:
        for one in read_file(path):
            place = (one.id, one.version)
            if place in found:
                raise BadDeclaration(f"{path}: {showable(one.id)} version {showable(one.version)!r} is declared a second time; first in {found[place][0]}")
            found[place] = (path, one)
    return Declared(one for _, one in found.values())


def read_file(path: Path) -> list[NamedDeclaration]:
    """The declarations of one file: a list, or a single one. Raises BadDeclaration."""
    written = _written(path)
    several = isinstance(written, list)
    try:
        read_ones = msgspec.convert(written if several else [written], list[NamedDeclaration])
    except msgspec.ValidationError as error:
        raise BadDeclaration(f"{path}: {_located(str(error), written, several)}") from error
    if faults := [fault for at, one in enumerate(read_ones) for fault in _faults(one, f"$[{at}]" if several else "$")]:
        raise BadDeclaration(f"{path}: " + "; ".join(faults))
    return read_ones


def _plain(one: NamedDeclaration) -> Declaration:
    return Declaration(**{name: getattr(one, name) for name in Declaration.__struct_fields__})


def _faults(one: NamedDeclaration, path: str) -> list[str]:
    found = [] if _NAME.fullmatch(one.id) else [f"{path}.id: {showable(one.id, limit=80)!r} is not of the form team/name"]
    found += [f"{path}{at[1:]}: {why}" for at, why in contradictions(one)]
    if found:
        return found
    merged = ((task, contradictions(_plain(one).overridden_by(own))) for task, own in one.tasks.items())
    return [f"{path}.tasks.{showable(task)}{at[1:]}: {why}" for task, faults in merged for at, why in faults]


# --- reading ---------------------------------------------------------------------------------------------------------


class _Loader(yaml.SafeLoader):
    """Plain values alone, and no key twice: the second would silently replace the first."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = next((key for at, key in enumerate(keys) if key in keys[:at]), None)
        if twice is not None:
            raise yaml.constructor.ConstructorError(None, None, f"the key {twice!r} stands twice", node.start_mark)
        return super().construct_mapping(node, deep)


def _written(path: Path) -> Any:
    try:
        if path.stat().st_size > FILE_BYTES:
            raise BadDeclaration(f"{path}: more than {FILE_BYTES >> 20} MiB are no declarations")
        return yaml.load(path.read_bytes(), Loader=_Loader)  # noqa: S506  (a SafeLoader)
    except OSError as error:
        raise BadDeclaration(f"{path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise BadDeclaration(f"{path}: {showable(str(error), limit=400)}") from error
    except RecursionError as error:
        raise BadDeclaration(f"{path}: nested too deeply") from error


def _located(message: str, written: Any, several: bool) -> str:
    """msgspec names the path; the value stands in the file."""
    match = _AT.fullmatch(message)
    reason, inner = match.groups() if match else (message, "[0]")
    value, shown = (written if several else [written]), inner if several else inner.removeprefix("[0]")
    for name, index in _STEP.findall(inner):
        if not name and not index:
            break  # inside a mapping whose key msgspec does not tell
        value = value[name or int(index)]
    hint = "; write it in quotes" if "Expected `str`" in reason and isinstance(value, int | float) else ""
    said = "" if "missing" in reason or "unknown" in reason else f", and not {showable(_short.repr(value))}"
    return f"${shown}: {showable(reason, limit=300)}{said}{hint}"
