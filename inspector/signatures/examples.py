"""Turns the snippets of a rule into episodes as they would be posted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inspector.check import Example, envelope, example
from inspector.signatures.packs import Snippet


def examples(snippets: Sequence[Snippet]) -> tuple[Example, ...]:
    """One episode for each."""
    return tuple(example(snippet.name, _posted(snippet)) for snippet in snippets)


def _posted(snippet: Snippet) -> dict[str, Any]:
    if snippet.envelope is not None:
        return envelope(**snippet.envelope)
    task = {"step_id": 1, "source": "user", "message": snippet.prompt or "Make the tests pass."}
    return envelope(steps=[task, {"step_id": 2, "source": "agent", "message": snippet.message or "", **_turn(snippet)}])


def _turn(snippet: Snippet) -> dict[str, Any]:
    turn: dict[str, Any] = {} if snippet.reasoning is None else {"reasoning_content": snippet.reasoning}
    calls = [{"tool_call_id": f"call_{at}", "function_name": name, "arguments": arguments} for at, (name, arguments) in enumerate(_calls(snippet), start=1)]
    if snippet.observation is not None and not calls:
        calls = [{"tool_call_id": "call_1", "function_name": "bash", "arguments": {"command": "pwd"}}]
    if calls:
        turn["tool_calls"] = calls
    if snippet.observation is not None:
        turn["observation"] = {"results": [{"source_call_id": "call_1", "content": snippet.observation}]}
    return turn


def _calls(snippet: Snippet) -> list[tuple[str, dict[str, Any]]]:
    calls: list[tuple[str, dict[str, Any]]] = []
    if snippet.command is not None:
        calls.append(("bash", {"command": snippet.command}))
    if snippet.write is not None:
        calls.append(("write_file", {"path": snippet.write.path, "content": snippet.write.content}))
    if snippet.edit is not None:
        calls.append(("str_replace_editor", {"command": "str_replace", "path": snippet.edit.path, "old_str": snippet.edit.old, "new_str": snippet.edit.new}))
    if snippet.read is not None:
        calls.append(("read_file", {"path": snippet.read}))
    if snippet.tool is not None:
        calls.append((snippet.tool, snippet.arguments or {}))
    return calls
