"""Parses shell lines (tree-sitter) into simple commands with their words, redirections and here-documents.

Bounded in size, in time and in depth; what cannot be parsed within them is one command without words, and is told.
"""

from __future__ import annotations

import re
import threading
import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any

import tree_sitter
import tree_sitter_bash

from inspector.actions import allowance
from inspector.actions.allowance import SHELL_S
from inspector.actions.prefixes import strip
from inspector.actions.words import Passage, Word

SHELL_CHARS = 1 << 17
PARSE_S = 0.25  # of CPU, for one text
COMMANDS = 500  # of one shell line
WORD_DEPTH = 20
REPEATED_CHARS, REPEATED = 2000, 2000  # agents repeat themselves: so many short texts are kept as they were parsed
_CHUNK = 1 << 14
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_IN_QUOTES = re.compile(r'\\([$`"\\\n])')
_LANGUAGE = tree_sitter.Language(tree_sitter_bash.language())
_OWN = threading.local()  # a parser is not to be used by two threads at once


class Unparsable(Exception):
    """The text is too long, took too long, or is no shell."""


@dataclass(slots=True)
class Command:
    """One simple command. Texts that come again share theirs: nobody changes it once it is read."""

    start: int
    end: int
    words: list[Word]
    env: list[tuple[str, str]]
    writes: list[tuple[Word, bool]] = field(default_factory=list)  # redirections to files, and whether they append
    document: Word | None = None  # the here-document or here-string that it reads
    swallowed: bool = False
    fed_by: Command | None = None  # what stands before it in the pipeline

    @property
    def name(self) -> str:
        """The program, without its folder."""
        return self.words[0].text.rpartition("/")[2] if self.words else ""


def commands(passage: Passage) -> tuple[Sequence[Command], bool]:
    """The simple commands in order, those inside substitutions, functions and loops too; and whether all of it could be parsed. Raises Unparsable."""
    if len(passage.text) > SHELL_CHARS:
        raise Unparsable(f"{len(passage.text)} characters are more than are parsed")
    return _read_once(passage.text) if len(passage.text) <= REPEATED_CHARS else _Reader(passage.text).read()


@lru_cache(REPEATED)
def _read_once(text: str) -> tuple[Sequence[Command], bool]:
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self._data = text.encode("utf-8", "replace")
        self._starts = None if text.isascii() else _starts(text)
        self._found: list[Command] = []

    def read(self) -> tuple[list[Command], bool]:
        root = _parsed(self._data)
        if root.has_error and not any(child.type != "ERROR" for child in root.named_children):
            raise Unparsable("it is no shell")
        self._walk(root)
        return self._found, not root.has_error and len(self._found) < COMMANDS

    def _walk(self, root: Any) -> None:
        """Depth first, without recursion: the tree may be as deep as the text is long."""
        waiting = [root]
        after: list[tuple[Any, int]] = []  # statements whose redirections wait for their commands
        while waiting and len(self._found) < COMMANDS:
            node = waiting.pop()
            if node is None:
                statement, first = after.pop()
                self._close(statement, first)
                continue
            if node.type == "command":
                self._found.append(self._command(node))
            if node.type in ("redirected_statement", "list", "pipeline"):
                after.append((node, len(self._found)))
                waiting.append(None)
            waiting += reversed(node.named_children)

    def _close(self, node: Any, first: int) -> None:
        inside = self._found[first:]
        if not inside:
            if node.type == "redirected_statement":
                self._found.append(Command(self._at(node.start_byte), self._at(node.end_byte), [], []))
                self._redirect(node, self._found[-1])
        elif node.type == "redirected_statement":
            self._redirect(node, _last(inside, node, self._at))
        elif node.type == "list":
            _swallow(node, inside)
        else:
            for before, command in pairwise(inside):
                command.fed_by = before

    def _redirect(self, node: Any, command: Command) -> None:
        for redirect in node.named_children:
            if redirect.type == "heredoc_redirect":
                for part in redirect.named_children:
                    if part.type == "heredoc_body":
                        start, end = self._at(part.start_byte), self._at(part.end_byte)
                        command.document = Word(self._text(part), start, end, (start, end))
                    elif part.type == "file_redirect":
                        self._file(part, command)
                    else:  # `cat <<X | tee file`
                        self._feed(command, self._at(part.start_byte), self._at(part.end_byte))
            elif redirect.type == "herestring_redirect" and redirect.named_children:
                command.document = self._word(redirect.named_children[-1])
            elif redirect.type == "file_redirect":
                self._file(redirect, command)

    def _feed(self, command: Command, start: int, end: int) -> None:
        for other in self._found:
            if other is not command and start <= other.start < end:
                other.fed_by = command
                return

    def _file(self, node: Any, command: Command) -> None:
        targets = node.children_by_field_name("destination")
        command.words += [self._word(behind) for behind in targets[1:]]  # `rm > log a b`: the grammar takes them for targets too
        operator = next((child.type for child in node.children if ">" in child.type), None)
        if operator is None or not targets or ">&" in operator:
            return
        target = self._word(targets[0])
        if target.text not in ("/dev/null", "/dev/stdout", "/dev/stderr"):
            command.writes.append((target, ">>" in operator))

    def _command(self, node: Any) -> Command:
        env: list[tuple[str, str]] = []
        words: list[Word] = []
        command = Command(self._at(node.start_byte), self._at(node.end_byte), words, env)
        for child in node.named_children:
            if child.type == "variable_assignment":
                name, _, value = self._text(child).partition("=")
                env.append((name, value.strip("'\"")))
            elif child.type == "herestring_redirect" and child.named_children:
                command.document = self._word(child.named_children[-1])
            elif child.type == "file_redirect":
                self._file(child, command)
            else:
                words.append(self._word(child))
        strip(words, env)
        return command

    def _word(self, node: Any) -> Word:
        while node.type == "command_name" and node.named_children:
            node = node.named_children[0]
        start, end = self._at(node.start_byte), self._at(node.end_byte)
        text, raw = self._value(node, 0), self._text(node)
        for cut in (0, 1):
            if raw[cut : len(raw) - cut] == text:
                return Word(text, start, end, (start + cut, end - cut))
        return Word(text, start, end)

    def _value(self, node: Any, depth: int) -> str:
        text = self._text(node)
        if node.type == "raw_string":
            return text.removeprefix("'").removesuffix("'")
        if node.type == "string":  # whose end may be missing
            return _IN_QUOTES.sub(lambda found: "" if found[1] == "\n" else found[1], text.removeprefix('"').removesuffix('"'))
        if node.type == "ansi_c_string":
            return text[2:-1].replace("\\n", "\n").replace("\\t", "\t").replace("\\'", "'")
        if node.type == "concatenation" and depth < WORD_DEPTH:
            return "".join(self._value(child, depth + 1) for child in node.children)
        return _ESCAPED.sub(r"\1", text) if node.type == "word" else text

    def _text(self, node: Any) -> str:
        return self._data[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def _at(self, byte: int) -> int:
        return byte if self._starts is None else bisect_right(self._starts, byte) - 1


def _starts(text: str) -> list[int]:
    at, starts = 0, []
    for char in text:
        starts.append(at)
        at += 1 if char < "\x80" else len(char.encode("utf-8", "replace"))
    return [*starts, at]


def _parsed(data: bytes) -> Any:
    if not hasattr(_OWN, "parser"):
        _OWN.parser = tree_sitter.Parser(_LANGUAGE)
    began, allowed = time.thread_time(), allowance.current()
    if allowed.shell_s <= 0:
        raise Unparsable(f"the {SHELL_S:g} s for all commands of a trajectory were used up before")
    until = began + min(PARSE_S, allowed.shell_s)
    try:
        tree = _OWN.parser.parse(lambda at, _: data[at : at + _CHUNK], progress_callback=lambda *_: time.thread_time() > until)
    except ValueError as error:
        _OWN.parser.reset()
        raise Unparsable("it takes too long to parse") from error
    finally:
        allowed.shell_s -= time.thread_time() - began
    return tree.root_node


def _last(inside: Sequence[Command], node: Any, at: Any) -> Command:
    """The command that a redirection behind a statement belongs to: the last of its body."""
    body = node.child_by_field_name("body")
    end = at(body.end_byte) if body is not None else None
    within = [command for command in inside if end is None or command.start < end]
    outermost = [
        command for command in within if not any(other is not command and other.start <= command.start and other.end > command.end for other in within)
    ]
    return (outermost or within or list(inside))[-1]


def _swallow(node: Any, inside: Sequence[Command]) -> None:
    """`… || true`: whatever stands before the last command may fail unseen."""
    operators = [child.type for child in node.children if not child.is_named]
    if operators[-1:] == ["||"] and inside[-1].name in ("true", ":") and len(inside) > 1:
        for command in inside[:-1]:
            command.swallowed = True
