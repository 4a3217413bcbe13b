"""Replays a Dockerfile in a box: the initial state of a task as a layer, or the reason why it cannot be had here."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from inspector.environments.harbor.dockerfile import Instruction, NotReplayable, expanded, fetches, instructions, pairs, plain_base, words
from inspector.environments.harbor.standing_in import Tools
from inspector.environments.trees import File, Tree
from inspector.errors import InspectorError
from inspector.sandbox.protocol import Backend, Box, Layer, Limits

IGNORED = frozenset({"LABEL", "EXPOSE", "MAINTAINER", "STOPSIGNAL", "ONBUILD"})
IDLE = re.compile(r"bash|sh|sleep|tail|python3?|true|/bin/(?:ba)?sh|")
ARCHIVE = re.compile(r"\.(?:tar|tgz|tbz2|txz|tar\.\w+)$")
OPTION = re.compile(r"--([a-z]+)(?:=(\S+))?\s+")


class NotBuilt(InspectorError):
    """The initial state could not be reproduced here; says nothing about the task."""


@dataclass(frozen=True)
class Built:
    """An initial state."""

    layers: tuple[Layer, ...]
    workdir: str
    environment: dict[str, str]
    notes: tuple[str, ...]


@dataclass
class _State:
    """What instructions change besides files."""

    environment: dict[str, str]
    workdir: str = "/"
    arguments: dict[str, str] = field(default_factory=dict)
    shell: list[str] = field(default_factory=lambda: ["/bin/sh", "-c"])
    notes: list[str] = field(default_factory=list)
    based: bool = False

    def values(self) -> dict[str, str]:
        return {**self.arguments, **self.environment}


def build(backend: Backend, tools: Tools, context: Tree, folder: str, limits: Limits) -> Built:
    """The state that the Dockerfile in `folder` of a tree describes. Raises NotBuilt; Refused and Broken as the sandbox does."""
    state = _State({"PATH": tools.path, "HOME": "/root"})
    try:
        plan = instructions(context.text(f"{folder}/Dockerfile", 1 << 20))
        for each in plan:
            _refuse(each)
        with backend.create([tools.layer], limits=limits) as box:
            replay = _Replay(box, state, context, folder, limits.wall_s)
            for each in plan:
                replay.step(each)
            layer = box.snapshot()
    except NotReplayable as error:
        raise NotBuilt(str(error)) from error
    if not state.based:
        raise NotBuilt("Dockerfile: no FROM")
    return Built((tools.layer, layer), state.workdir, state.environment, tuple(state.notes))


def _refuse(each: Instruction) -> None:
    """What is known before anything is run."""
    if each.word == "RUN" and (tool := fetches(f"{each.text}\n{''.join(each.documents)}")):
        raise NotReplayable(each.line, f"RUN needs {tool}: no network and no such tools here")
    if each.word == "USER" and each.text.split(":")[0] not in ("root", "0"):
        raise NotReplayable(each.line, f"USER {each.text[:40]}: there is only root in a box")
    if each.word in ("COPY", "ADD") and "--from" in each.text:
        raise NotReplayable(each.line, f"{each.word} --from another stage or image")
    if each.word == "ADD" and re.search(r"(?:https?|ftp|git)(?:://|@)|\.git\b", each.text):
        raise NotReplayable(each.line, "ADD from an address: no network here")
    if each.word == "RUN" and "--mount=type=bind" in each.text:
        raise NotReplayable(each.line, "RUN --mount=type=bind")


class _Replay:
    def __init__(self, box: Box, state: _State, context: Tree, folder: str, timeout_s: float) -> None:
        self._box = box
        self._state = state
        self._context = context
        self._folder = folder
        self._timeout_s = timeout_s

    def step(self, each: Instruction) -> None:
        """Do one instruction. Raises NotReplayable."""
        if each.word in IGNORED:
            return
        if not self._state.based and each.word not in ("FROM", "ARG"):
            raise NotReplayable(each.line, f"{each.word} before FROM")
        getattr(self, f"_{each.word.lower()}")(each)

    def _from(self, each: Instruction) -> None:
        if self._state.based:
            raise NotReplayable(each.line, "more than one stage")
        text = OPTION.sub("", expanded(each.text, self._state.arguments))
        image = text.split()[0] if text.split() else ""
        if not plain_base(image):
            raise NotReplayable(each.line, f"base image {image[:100]!r}: only python, debian and ubuntu are stood in for")
        self._state.based = True
        self._state.arguments.clear()
        self._state.notes.append(f"the machine's own system stood in for {image[:100]}")

    def _arg(self, each: Instruction) -> None:
        name, _, value = each.text.partition("=")
        self._state.arguments[name.strip()] = expanded(value.strip().strip("\"'"), self._state.values())

    def _env(self, each: Instruction) -> None:
        values = self._state.values()
        self._state.environment.update({name: expanded(value, values) for name, value in pairs(each.text)})

    def _workdir(self, each: Instruction) -> None:
        self._state.workdir = self._inside(expanded(each.text.strip("\"'"), self._state.values()))
        self._run_or_refuse(each, ["/bin/mkdir", "-p", self._state.workdir])

    def _inside(self, path: str) -> str:
        return posixpath.normpath(posixpath.join(self._state.workdir, path))

    def _user(self, each: Instruction) -> None:
        """Root, as _refuse has seen to."""

    def _shell(self, each: Instruction) -> None:
        self._state.shell = words(each.text) or self._state.shell

    def _volume(self, each: Instruction) -> None:
        for path in words(each.text) or each.text.split():
            self._run_or_refuse(each, ["/bin/mkdir", "-p", self._inside(path)])

    def _cmd(self, each: Instruction) -> None:
        command = words(each.text) or each.text.split()
        if not IDLE.fullmatch(command[0] if command else ""):
            self._state.notes.append(f"Dockerfile:{each.line}: {each.word} {each.text[:80]} is not started")

    _entrypoint = _healthcheck = _cmd

    def _run(self, each: Instruction) -> None:
        text = OPTION.sub("", each.text) if each.text.startswith("--") else each.text
        command = words(text)
        if command is None and re.fullmatch(r"<<-?[\"']?\w+[\"']?", text) and each.documents:
            command = [*self._state.shell, each.documents[0]]
        if command is None:
            command = [*self._state.shell, text + "".join(f"\n{body}{name}" for body, name in zip(each.documents, _document_names(text), strict=False))]
        self._run_or_refuse(each, command)

    def _run_or_refuse(self, each: Instruction, command: Sequence[str]) -> None:
        environment = {**self._state.arguments, **self._state.environment}
        result = self._box.run(command, timeout_s=self._timeout_s, cwd=self._state.workdir if each.word == "RUN" else "/", environment=environment)
        if not result.ok:
            said = (result.stderr or result.stdout)[-600:].decode(errors="replace").strip()
            raise NotReplayable(each.line, f"{each.word} {each.text[:120]} {result.ended} {result.exit_code}: {said}")

    def _copy(self, each: Instruction) -> None:
        mode, text = None, each.text
        while found := OPTION.match(text):
            if found[1] == "chmod":
                mode = int(found[2] or "0", 8) if re.fullmatch(r"[0-7]{3,4}", found[2] or "") else None
            text = text[found.end() :]
        sources = [expanded(part, self._state.values()) for part in words(text) or _split(each.line, text)]
        if len(sources) < 2:
            raise NotReplayable(each.line, f"{each.word} without a source or a destination")
        documents = dict(zip(_document_names(text), each.documents, strict=False))
        for path, data, own_mode in self._placed(each, sources[:-1], sources[-1], documents):
            self._box.write(path, data, mode=mode or own_mode)

    _add = _copy

    def _placed(self, each: Instruction, sources: Sequence[str], target: str, documents: dict[str, str]) -> Iterator[tuple[str, bytes, int]]:
        into = target.endswith("/") or target in (".", "..") or len(sources) > 1 or self._is_folder(self._inside(target))
        target = self._inside(target)
        for source in sources:
            if source.startswith("<<"):
                name = source.lstrip("<-").strip("\"'")
                yield (posixpath.join(target, name) if into else target), documents.get(name, "").encode(), 0o644
                continue
            if each.word == "ADD" and ARCHIVE.search(source):
                raise NotReplayable(each.line, f"ADD unpacks {source[:80]}")
            for file, relative in self._chosen(each, source):
                place = posixpath.join(target, relative) if relative else target
                if relative == "":
                    place = posixpath.join(target, posixpath.basename(file.path)) if into else target
                yield place, self._context.read(file.path), 0o755 if file.executable else 0o644

    def _is_folder(self, path: str) -> bool:
        return self._box.run(["/usr/bin/test", "-d", path], timeout_s=10).ok

    def _chosen(self, each: Instruction, source: str) -> Iterator[tuple[File, str]]:
        """Files of the context with their places below the target; an empty place for a file that was named itself."""
        pattern = posixpath.normpath(source.lstrip("/")) if source.strip("/.") else "."
        found = False
        for file in self._visible():
            path = file.path.removeprefix(f"{self._folder}/")
            place = _place(path, pattern)
            if place is not None:
                found = True
                yield file, place
        if not found and not self._empty_folder(pattern):
            raise NotReplayable(each.line, f"{each.word} {source[:100]}: no such file in {self._folder}/")

    def _empty_folder(self, pattern: str) -> bool:
        path = self._context.root / self._folder / pattern
        return ".." not in pattern.split("/") and path.is_dir() and not path.is_symlink()

    def _visible(self) -> Iterator[File]:
        ignored = _ignored(self._context, self._folder)
        return (file for file in self._context.below(self._folder) if not _is_ignored(file.path.removeprefix(f"{self._folder}/"), ignored))


def _place(path: str, pattern: str) -> str | None:
    """Where a file goes below the target, by docker's rules; None where the pattern is not about it."""
    if pattern == ".":
        return path
    parts, wanted = path.split("/"), pattern.split("/")
    if len(parts) < len(wanted) or not all(map(fnmatchcase, parts, wanted)):
        return None
    return "/".join(parts[len(wanted) :])


def _document_names(text: str) -> list[str]:
    return [name for _, _, name in re.findall(r"<<(-?)([\"']?)([A-Za-z_]\w*)\2", text)]


def _split(line: int, text: str) -> list[str]:
    try:
        return shlex.split(text, posix=True)
    except ValueError as error:
        raise NotReplayable(line, f"{text[:80]!r}: {error}") from error


def _ignored(context: Tree, folder: str) -> list[str]:
    if f"{folder}/.dockerignore" not in context:
        return []
    lines = [line.strip() for line in context.text(f"{folder}/.dockerignore", 1 << 20).splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def _is_ignored(path: str, patterns: Sequence[str]) -> bool:
    out = False
    for pattern in patterns:
        wanted = pattern.removeprefix("!").strip("/")
        deep = wanted.startswith("**/") and fnmatchcase(path, f"*{wanted[2:]}")
        if deep or _place(path, wanted.removeprefix("**/")) is not None:
            out = not pattern.startswith("!")
    return out
