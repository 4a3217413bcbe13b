"""Reads a rule pack: YAML, bounded, nothing in it unknown, and every fault named by file, rule, path and value."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import yaml

from inspector.errors import MisusedCheck
from inspector.signatures.places import Place
from inspector.signatures.regex import BadPattern, Pattern, compiled
from inspector.verdict import Cause, Tier

PACK_BYTES = 1 << 20
RULES = 1000
_Id = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,79}\Z")]
_Version = Annotated[int, msgspec.Meta(ge=1)]
_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]


class BadPack(MisusedCheck):
    """A rule pack that cannot be used; the message lists every fault."""


class WriteSnippet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file that the agent wrote."""

    path: str
    content: str = ""


class EditSnippet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A piece of a file that the agent replaced."""

    path: str
    old: str = ""
    new: str = ""


class Snippet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An example: one thing that the agent said, did or saw, or a whole envelope as it would be posted."""

    name: _Text
    command: str | None = None
    write: WriteSnippet | None = None
    edit: EditSnippet | None = None
    read: str | None = None
    message: str | None = None
    prompt: str | None = None
    reasoning: str | None = None
    observation: str | None = None
    tool: str | None = None
    arguments: dict[str, Any] | None = None  # of the tool
    envelope: dict[str, Any] | None = None  # fields of the envelope; `steps` are those of its trajectory


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule as it is written."""

    id: _Id
    version: _Version
    title: _Text
    where: Annotated[list[Place], msgspec.Meta(min_length=1)]
    patterns: Annotated[list[_Text], msgspec.Meta(min_length=1, max_length=1000)]
    tier: Tier
    cause: Cause
    flagged: Annotated[list[Snippet], msgspec.Meta(min_length=1)]
    clean: Annotated[list[Snippet], msgspec.Meta(min_length=1)]
    why: str = ""
    unless: Annotated[list[_Text], msgspec.Meta(max_length=1000)] = []  # none of these on the lines that a match touches
    score: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0


class CompiledRule(msgspec.Struct, frozen=True):
    """A rule with its patterns."""

    rule: Rule
    patterns: tuple[Pattern, ...]
    unless: tuple[Pattern, ...]


class Pack(msgspec.Struct, frozen=True):
    """What one file holds."""

    id: str
    version: int
    source: str
    rules: tuple[CompiledRule, ...]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pack: _Id
    version: _Version
    rules: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1, max_length=RULES)]


def read_file(path: Path) -> Pack:
    """Raises BadPack."""
    try:
        with path.open("rb") as file:
            data = file.read(PACK_BYTES + 1)
    except OSError as error:
        raise BadPack(f"{path}: {error.strerror}") from error
    return read(data, str(path))


def read(data: bytes, source: str) -> Pack:
    """A pack from its bytes; `source` is how messages call it. Raises BadPack with every fault."""
    if len(data) > PACK_BYTES:
        raise BadPack(f"{source}: more than {PACK_BYTES} bytes")
    try:
        file = msgspec.convert(_yaml(data), _File)
    except (yaml.YAMLError, msgspec.ValidationError, RecursionError, UnicodeDecodeError) as error:
        raise BadPack(f"{source}: {error}") from error
    faults: list[str] = []
    rules = [rule for at, posted in enumerate(file.rules) if (rule := _rule(at, posted, faults))]
    ids = [rule.rule.id for rule in rules]
    faults += [f"rule {id_!r}: more than one rule has this id" for id_ in dict.fromkeys(ids) if ids.count(id_) > 1]
    if faults:
        raise BadPack("\n".join(f"{source}: {fault}" for fault in faults))
    return Pack(file.pack, file.version, source, tuple(rules))


_SAFE = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SAFE):  # type: ignore[misc, valid-type]
    """Refuses a key that comes twice: one of its values would be lost."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key.value!r} comes twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _yaml(data: bytes) -> Any:
    for event in yaml.parse(data, Loader=_SAFE):
        if isinstance(event, yaml.AliasEvent):  # a few of them make a document that no memory holds
            raise yaml.YAMLError(f"aliases are not read, write it out:\n{event.start_mark}")
    return yaml.load(data, Loader=_Loader)  # noqa: S506 - a safe loader that refuses more


def _rule(at: int, posted: dict[str, Any], faults: list[str]) -> CompiledRule | None:
    label = f"rule {posted['id']!r}" if isinstance(posted.get("id"), str) else f"rules[{at}]"
    try:
        rule = msgspec.convert(posted, Rule)
    except msgspec.ValidationError as error:
        faults.append(f"{label}: {error}{_value(posted, str(error))}")
        return None
    found = [f"{label}: $.title: {rule.title!r} is no sentence"] if not rule.title.endswith(".") else []
    found += [f"{label}: {fault}" for fault in _snippets(rule)]
    made = {name: tuple(_patterns(f"{label}: $.{name}", sources, found)) for name, sources in (("patterns", rule.patterns), ("unless", rule.unless))}
    faults += found
    return None if found else CompiledRule(rule, made["patterns"], made["unless"])


def _patterns(path: str, sources: list[str], faults: list[str]) -> Iterator[Pattern]:
    for at, source in enumerate(sources):
        try:
            yield compiled(source)
        except BadPattern as error:
            faults.append(f"{path}[{at}]: {error}")


def _snippets(rule: Rule) -> Iterator[str]:
    for kind in ("flagged", "clean"):
        for at, snippet in enumerate(getattr(rule, kind)):
            given = [name for name in snippet.__struct_fields__ if name not in ("name", "arguments") and getattr(snippet, name) is not None]
            if not given:
                yield f"$.{kind}[{at}]: {snippet.name!r} shows nothing: give one of command, write, edit, read, message, observation, tool, envelope, …"


def _value(posted: Any, error: str) -> str:
    """The value that msgspec's message points at, where it can be found."""
    path = error.rpartition("`$.")[2].rstrip("`") if "`$." in error else ""
    for part in path.replace("[", ".").replace("]", "").split(".") if path else []:
        try:
            posted = posted[int(part)] if isinstance(posted, list) else posted[part]
        except (KeyError, IndexError, ValueError, TypeError):
            return ""
    return f", found {posted!r:.100}" if path else ""
