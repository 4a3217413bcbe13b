"""What an agent did, whatever its harness calls it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from inspector.verdict import Span

SPAN_CHARS = 500


class Kind(StrEnum):
    """Of an action."""

    COMMAND = "command"  # one simple command of a shell line, or a whole line that could not be parsed (no argv then)
    CODE = "code"  # a program that was run, in Python
    WRITE = "write"  # a file got other content: `text` is the whole of it, where it stands in the record
    EDIT = "edit"  # a piece of a file was replaced: `removed` and `text` (what was added)
    DELETE = "delete"
    READ = "read"
    TOOL = "tool"  # a call of anything else: `path` is the tool's name


class Action(msgspec.Struct, frozen=True, gc=False):
    """One thing that the agent did, and where the record says so."""

    kind: Kind
    span: Span
    path: str = ""  # of the file, as it was written
    text: str = ""
    removed: str = ""
    argv: tuple[str, ...] = ()  # words of a command without its prefixes (`sudo`, `env`, `timeout 5`); what a shell would fill in stays as `$NAME`
    env: tuple[tuple[str, str], ...] = ()  # assignments before a command
    via: str = ""  # how a file was touched: `redirect`, `tee`, `sed`, `python`, `tool`, …
    appends: bool = False
    verbatim: bool = False  # the span's quote begins with `text` as it stands there
    swallowed: bool = False  # a command whose failure was thrown away by `|| true`


class Word(msgspec.Struct, frozen=True, gc=False):
    """One word of a command, unquoted; what a shell would fill in stands as it was written."""

    text: str
    start: int  # of its source in the passage, characters
    end: int
    verbatim: tuple[int, int] | None = None  # where its text stands as it is


class Unread(msgspec.Struct, frozen=True, gc=False):
    """A piece that could not be parsed: it was read as plain text alone."""

    span: Span
    reason: str


class Passage(msgspec.Struct, frozen=True, gc=False):
    """A text that the agent gave to a tool, and where it stands; `offset` None where it is no piece of a field as it is."""

    text: str
    place: Span  # the whole field, or the place that the text was read from
    offset: int | None = 0

    def span(self, start: int = 0, end: int | None = None) -> Span:
        """Of characters [start, end) of the text."""
        if self.offset is None:
            return self.place
        end = min(len(self.text) if end is None else end, start + SPAN_CHARS)
        return replace_span(self.place, self.offset + start, self.offset + end, self.text[start:end])

    def piece(self, start: int, end: int) -> Passage:
        """A part of it, as it stands."""
        if self.offset is None:
            return Passage(self.text[start:end], self.place, None)
        return Passage(self.text[start:end], self.place, self.offset + start)

    def reading(self, text: str, start: int = 0, end: int | None = None) -> Passage:
        """Another text (unquoted, put together) that was read from that part of it."""
        return Passage(text, self.span(start, end), None)


def replace_span(span: Span, start: int, end: int, quote: str) -> Span:
    """The same field, other characters."""
    return Span(step=span.step, field=span.field, start=start, end=end, quote=quote)


def below(action: Action, folder: str) -> Action:
    """The action as seen from where `cd` had gone."""
    if not folder or not action.path or action.path.startswith(("/", "~", "$")):
        return action
    return msgspec.structs.replace(action, path=f"{folder.rstrip('/')}/{action.path.removeprefix('./')}")
