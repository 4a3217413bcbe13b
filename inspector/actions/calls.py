"""Reads one tool call, of whatever harness, into actions: by what its arguments are called first, by the tool's name second."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any

from inspector.actions import patches, program
from inspector.actions.effects import of_shell
from inspector.actions.words import Action, Kind, Passage, Unread
from inspector.step_texts import plain
from inspector.trajectory import ToolCall
from inspector.verdict import Span

Found = Iterator[Action | Unread]
_LINES = ("command", "cmd", "commands", "keystrokes", "keys", "script", "bash_command", "shell_command", "input", "code", "source")
_SURELY = ("command", "cmd", "commands", "keystrokes", "bash_command", "shell_command")  # whatever the tool is called
_CODE = ("code", "script", "source", "input", "command", "cell")
_PATHS = ("path", "file_path", "filepath", "filename", "file_name", "file", "target_file", "absolute_path", "notebook_path", "uri")
_CONTENTS = ("content", "contents", "file_text", "text", "new_source", "code_edit", "new_content", "data", "body")
_OLD, _NEW = ("old_str", "old_string", "old_text", "old", "search", "find"), ("new_str", "new_string", "new_text", "new", "replace", "replacement")
_PATCHES = ("patch", "diff", "input", "unified_diff", "changes")
_SHELL = re.compile(r"(^|[._-])(bash|shell|sh|terminal|cmd|command|exec|execute|run|console|keystrokes|subprocess)([._-]|$)|bash|shell|terminal", re.IGNORECASE)
_PYTHON = re.compile(r"python|jupyter|notebook_cell|code_interpreter|run_code|execute_code|run_cell|^code$", re.IGNORECASE)
_FILES = re.compile(r"file|edit|write|create|save|append|replace|patch|read|view|open|cat|delete|remove|move|rename", re.IGNORECASE)
_BESIDE = {  # arguments beside a shell line that mean nothing for what it does
    *("timeout", "timeout_s", "timeout_ms", "timeout_seconds", "duration", "wait", "is_input", "is_blocking", "blocking", "background"),
    *("run_in_background", "restart", "description", "security_risk", "thought", "explanation", "session_id", "workdir", "cwd"),
}
_EDIT_VERBS = {"view", "create", "str_replace", "insert", "undo_edit", "delete", "write", "read", "append", "edit"}


def of_call(call: ToolCall, step: int, number: int) -> Found:
    """What one tool call does. A call of a tool that is none of ours to know is an action of kind `tool`."""
    args = _Arguments(call.arguments, step, number)
    name = _last(call.function_name)
    verb = args.get("command")
    if isinstance(verb, str) and verb in _EDIT_VERBS and args.first(_PATHS):
        yield from _file(verb, args)
    elif _is_patch(name, args):
        yield from patches.actions(args.passage(args.first(_PATCHES) or "patch"))
    elif (key := args.first(_CODE)) and (_PYTHON.search(name) or (key in ("code", "cell", "source") and not args.shell())):
        yield from program.of_python(args.passage(key), of_shell)
    elif (args.first(_PATHS) and _FILES.search(name)) or (args.first(_PATHS) and (args.first(_OLD) or args.first(_NEW))):
        yield from _file(name, args)
    elif (key := args.first(_LINES)) and (_SHELL.search(name) or key in _SURELY):
        yield from _lines(args, key)
    else:
        yield Action(Kind.TOOL, args.whole(), path=call.function_name)


def line_of(call: ToolCall) -> str | None:
    """The shell line of a call that is nothing else."""
    names = list(call.arguments) if len(call.arguments) == 1 else [name for name in call.arguments if name not in _BESIDE]
    if len(names) != 1 or not _runs_lines(call.function_name):
        return None
    [name] = names
    line = call.arguments[name]
    return line if name in _SURELY and isinstance(line, str) and line else None


@lru_cache(1000)
def _runs_lines(tool: str) -> bool:
    """Whether what is surely a line is taken for one, and not for Python."""
    return not _PYTHON.search(_last(tool))


def _last(tool: str) -> str:
    """The name without the server or the class that it is of."""
    return tool.rpartition("__")[2].rpartition(".")[2] or tool


class _Arguments:
    def __init__(self, values: Mapping[str, Any], step: int, number: int) -> None:
        self._values, self._step, self._number = values, step, number

    def get(self, name: str) -> Any:
        return self._values.get(name)

    def first(self, names: tuple[str, ...]) -> str | None:
        """The first of these arguments that holds something, by its own name."""
        return next((self._given[name] for name in names if name in self._given), None)

    @cached_property
    def _given(self) -> dict[str, str]:
        """By their names in small letters, those that hold something."""
        folded = {name.lower(): name for name in self._values}
        return {name: own for name, own in folded.items() if self._values[own] not in (None, "", [], {})}

    def text(self, names: tuple[str, ...]) -> str:
        name = self.first(names)
        return plain(self._values[name]) if name else ""

    def shell(self) -> bool:
        """Whether the call says that its code is a shell's."""
        return str(self._values.get("language", self._values.get("lang", ""))).lower() in ("bash", "sh", "shell")

    def passage(self, name: str) -> Passage:
        """An argument as it stands in the record, as JSON where it is no text."""
        return Passage(plain(self._values.get(name, "")), Span(step=self._step, field=f"tool_calls[{self._number}].arguments.{name}"))

    def whole(self) -> Span:
        """Of the argument that says most, or of the tool's name."""
        longest = max(self._values, key=lambda name: len(plain(self._values[name])), default=None)
        return Span(step=self._step, field=f"tool_calls[{self._number}].function_name") if longest is None else self.passage(longest).span()

    def span(self, *groups: tuple[str, ...]) -> Span:
        name = next((found for names in groups if (found := self.first(names))), None)
        return self.whole() if name is None else self.passage(name).span()


def _is_patch(name: str, args: _Arguments) -> bool:
    key = args.first(_PATCHES)
    text = args.get(key) if key else None
    return isinstance(text, str) and patches.looks_like_a_patch(text) and ("patch" in name.lower() or "diff" in name.lower() or key in ("patch", "diff"))


def _file(verb: str, args: _Arguments) -> Found:
    path, span = args.text(_PATHS), args.span(_NEW, _CONTENTS, _OLD, _PATHS)
    edits = args.get("edits")
    if isinstance(edits, list):
        for edit in (each for each in edits if isinstance(each, dict)):
            inner = _Arguments(edit, span.step, 0)
            yield Action(Kind.EDIT, args.passage("edits").span(), path=path, removed=inner.text(_OLD), text=inner.text(_NEW), via="tool")
    elif args.first(_OLD) or args.first(_NEW):
        yield Action(Kind.EDIT, span, path=path, removed=args.text(_OLD), text=args.text(_NEW), via="tool")
    elif re.search(r"delete|remove", verb, re.IGNORECASE):
        yield Action(Kind.DELETE, span, path=path, via="tool")
    elif args.first(_CONTENTS) and not re.search(r"read|view|open|search|grep", verb, re.IGNORECASE):
        yield Action(Kind.WRITE, span, path=path, text=args.text(_CONTENTS), via="tool", appends=bool(re.search(r"append|insert|edit", verb, re.IGNORECASE)))
    elif re.search(r"read|view|open|cat|show|get", verb, re.IGNORECASE):
        yield Action(Kind.READ, span, path=path, via="tool")
    elif re.search(r"write|create|save", verb, re.IGNORECASE):
        yield Action(Kind.WRITE, span, path=path, via="tool")
    else:
        yield Action(Kind.TOOL, span, path=verb)


def _lines(args: _Arguments, key: str) -> Found:
    value = args.get(key)
    if isinstance(value, str):
        yield from of_shell(args.passage(key))
    elif isinstance(value, list):
        for line in _several(value):
            yield from of_shell(args.passage(key).reading(line))
    elif isinstance(value, dict) and isinstance(value.get("command"), (str, list)):
        yield from of_shell(args.passage(key).reading(value["command"] if isinstance(value["command"], str) else "\n".join(_several(value["command"]))))


def _several(value: list[Any]) -> list[str]:
    """A list is one command's words, several lines, or keystrokes with their times."""
    if all(isinstance(word, str) for word in value):
        return [shlex.join(value)] if value and " " not in value[0] else list(value)
    return [str(each.get("keystrokes") or each.get("command") or "") for each in value if isinstance(each, dict)]
