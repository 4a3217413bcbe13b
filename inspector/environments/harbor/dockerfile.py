"""Reads a Dockerfile as a list of instructions, and says which of them cannot be replayed without docker."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from inspector.errors import InspectorError

WORDS = frozenset(
    {
        "ADD",
        "ARG",
        "CMD",
        "COPY",
        "ENTRYPOINT",
        "ENV",
        "EXPOSE",
        "FROM",
        "HEALTHCHECK",
        "LABEL",
        "MAINTAINER",
        "ONBUILD",
        "RUN",
        "SHELL",
        "STOPSIGNAL",
        "USER",
        "VOLUME",
        "WORKDIR",
    }
)
PLAIN_BASE = re.compile(r"^(?:docker\.io/)?(?:library/)?(?:python|debian|ubuntu|buildpack-deps)(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?$")
BENCH_BASE = re.compile(r"^ghcr\.io/[\w.-]+/t-bench/(?:python-3-\d+|ubuntu-\d\d-\d\d)(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?$")
HEREDOC = re.compile(r"<<(-?)([\"']?)([A-Za-z_]\w*)\2")
VARIABLE = re.compile(r"\\\$|\$(?:(\w+)|\{(\w+)(?:(:?[-+])([^}]*))?\})")
FETCH = re.compile(
    r"(?:^|[\s;&|(`])(curl|wget|git\s+clone|npm|npx|yarn|pnpm|cargo|rustup|go\s+(?:get|install|mod)|conda|mamba|gem|cpan|docker|systemctl|apk|yum|dnf|add-apt-repository)\b(?!-)"
)


class Instruction(NamedTuple):
    """One instruction; `line` is where it begins, from 1."""

    line: int
    word: str
    text: str  # continued lines joined
    documents: tuple[str, ...] = ()  # here-documents, in order


class NotReplayable(InspectorError):
    """An instruction that we cannot reproduce."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"Dockerfile:{line}: {reason}")


def instructions(text: str) -> list[Instruction]:
    """All instructions, in order. Raises NotReplayable where one is none that docker knows."""
    return list(_instructions(text.replace("\r\n", "\n").split("\n")))


def _instructions(lines: list[str]) -> Iterator[Instruction]:
    at = 0
    while at < len(lines):
        start, whole = at, ""
        at, whole = _joined(lines, at)
        if not whole.strip():
            continue
        word, _, rest = whole.strip().partition(" ")
        word = word.upper()
        if word not in WORDS:
            raise NotReplayable(start + 1, f"{word[:40]!r} is no instruction")
        documents = []
        if word in ("RUN", "COPY", "ADD"):
            for dash, _, name in HEREDOC.findall(rest):
                at, document = _document(lines, at, name, bool(dash))
                documents.append(document)
        yield Instruction(start + 1, word, rest.strip(), tuple(documents))


def _joined(lines: list[str], at: int) -> tuple[int, str]:
    """One instruction's lines as one; comments and empty lines inside of it are no part."""
    whole = ""
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.lstrip().startswith("#") or (whole and not line.strip()):
            continue
        if not line.rstrip().endswith("\\"):
            return at, whole + line
        whole += line.rstrip()[:-1] + " "
    return at, whole


def _document(lines: list[str], at: int, name: str, dashed: bool) -> tuple[int, str]:
    body: list[str] = []
    while at < len(lines):
        line = lines[at].lstrip("\t") if dashed else lines[at]
        at += 1
        if line == name:
            return at, "".join(f"{each}\n" for each in body)
        body.append(line)
    raise NotReplayable(at, f"here-document {name!r} has no end")


def plain_base(image: str) -> bool:
    """Whether an image is one of those that the root of a box can stand in for."""
    return bool(PLAIN_BASE.match(image) or BENCH_BASE.match(image))


def fetches(command: str) -> str | None:
    """The first command of a RUN that no box can do: fetching, or building with tools that no slim image has."""
    found = FETCH.search(command)
    return None if found is None else " ".join(found[1].split())


def expanded(text: str, values: Mapping[str, str]) -> str:
    """With `$NAME`, `${NAME}`, `${NAME:-word}` and `${NAME:+word}` replaced, as docker does it."""

    def value(found: re.Match[str]) -> str:
        if found[0] == "\\$":
            return "$"
        known = values.get(found[1] or found[2])
        if found[3] in (":-", "-"):
            return known if known or (known is not None and found[3] == "-") else found[4]
        if found[3] in (":+", "+"):
            return found[4] if known or (known is not None and found[3] == "+") else ""
        return known or ""

    return VARIABLE.sub(value, text)


def words(text: str) -> list[str] | None:
    """The words of a JSON form; None where it is none."""
    if not text.startswith("["):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) and all(isinstance(each, str) for each in value) else None


def pairs(text: str) -> list[tuple[str, str]]:
    """The names and values of ENV and LABEL: `A=b C="d e"`, or the old `A b c`."""
    found = re.findall(r"([A-Za-z_][\w.-]*)=((?:\"(?:\\.|[^\"\\])*\"|'[^']*'|\\.|[^\s\"'\\])*)", text)
    if found and re.match(r"[A-Za-z_][\w.-]*=", text):
        return [(name, _unquoted(value)) for name, value in found]
    name, _, value = text.partition(" ")
    return [(name, value.strip())]


def _unquoted(value: str) -> str:
    parts = re.findall(r"\"((?:\\.|[^\"\\])*)\"|'([^']*)'|\\(.)|([^\s\"'\\])", value)
    return "".join(re.sub(r"\\([\"\\])", r"\1", double) or single or escaped or plain for double, single, escaped, plain in parts)
