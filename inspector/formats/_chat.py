"""Reads chat messages (OpenAI's shape, and those of Inspect, verifiers and Anthropic that are near it) into a transcript."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from inspector.formats._json import text as json_text
from inspector.formats._transcript import Step, Transcript, joined

_SOURCES = {"system": "system", "developer": "system", "user": "user", "human": "user", "assistant": "agent", "model": "agent", "gpt": "agent", "ai": "agent"}
_TOOL = frozenset({"tool", "function"})
_READ = frozenset({"role", "from", "content", "value", "tool_calls", "function_call", "tool_call_id", "reasoning", "reasoning_content", "thinking"})
_ORDINARY = frozenset({"name", "id", "type", "status", "source", "model"})  # kept under extra without a word


def add(transcript: Transcript, messages: Sequence[Any], path: str, *, copied: bool = False) -> None:
    """Add `messages`; `copied` marks the agent's turns among them as context that this episode did not make."""
    for at, message in enumerate(messages):
        here = f"{path}[{at}]"
        if not isinstance(message, dict):
            transcript.keep(transcript.say("user", message, here), here, note="not a message object")
            continue
        step = _message(transcript, message, here)
        if copied and step is not None and step["source"] == "agent":
            step["is_copied_context"] = True


def _message(transcript: Transcript, message: dict[str, Any], path: str) -> Step | None:
    given = message.get("role", message.get("from"))
    role = given if isinstance(given, str) else json_text(given)
    content = message.get("content", message.get("value"))
    if role in _TOOL:
        _tool(transcript, message, content, path)
        return None
    source = _SOURCES.get(role, "user")
    if source == "agent":
        return _turn(transcript, message, content, path)
    results, rest = _split(content, "tool_result") if source == "user" else ([], content)
    for result in results:
        transcript.observe(result.get("tool_use_id"), result.get("content"), path, is_error=result.get("is_error"))
    if results and not rest:
        return None
    step = transcript.say(source, rest, path, role=role if role not in ("system", "user") else None)
    if role not in _SOURCES:
        transcript.lost.append(f"{path}.role: {role[:40]} is no role we know; read as user")
    agent_only = {name: message[name] for name in ("tool_calls", "function_call", "reasoning", "reasoning_content", "thinking") if message.get(name)}
    transcript.keep(step, path, **agent_only)
    _rest(transcript, step, message, path)
    return step


def _tool(transcript: Transcript, message: dict[str, Any], content: Any, path: str) -> None:
    error = message.get("error")
    shown = content if content or not isinstance(error, dict) else error.get("message")
    call_id = message.get("tool_call_id") or _first(message.get("tool_call_ids"))
    transcript.observe(call_id, shown, path, name=message.get("name") or message.get("function"), error=error)


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else None


def _turn(transcript: Transcript, message: dict[str, Any], content: Any, path: str) -> Step:
    calls, rest = _split(content, "tool_use")
    thoughts, rest = _split(rest, "reasoning", "thinking", "redacted_thinking")
    step = transcript.say("agent", rest, path)
    reasoning = [message.get(name) for name in ("reasoning_content", "reasoning", "thinking")]
    for thought in [*{joined([one]): None for one in reasoning if one}, *(words for part in thoughts if (words := _thought(part)))]:
        transcript.think(step, thought)
    transcript.keep(step, path, redacted_reasoning=[part for part in thoughts if part.get("redacted") or part.get("data")] or None)
    made = message.get("tool_calls")
    for call in made if isinstance(made, list) else []:
        _call(transcript, step, call, path)
    if isinstance(message.get("function_call"), dict):
        _call(transcript, step, message["function_call"], path)
    for part in calls:
        transcript.call(step, part.get("id"), part.get("name"), part.get("input"))
    _rest(transcript, step, message, path)
    return step


def _split(content: Any, *kinds: str) -> tuple[list[dict[str, Any]], Any]:
    """The parts of these kinds, and the content without them."""
    if not isinstance(content, list):
        return [], content
    taken = [part for part in content if isinstance(part, dict) and part.get("type") in kinds]
    return taken, [part for part in content if part not in taken] if taken else content


def _thought(part: dict[str, Any]) -> str:
    if part.get("redacted"):
        return joined([part.get("summary")])
    return joined([part.get("reasoning") or part.get("thinking") or part.get("text") or part.get("summary")])


def _call(transcript: Transcript, step: Step, call: Any, path: str) -> None:
    if isinstance(call, str):  # verifiers writes each call as JSON text
        call = _read(call)
    if not isinstance(call, dict):
        transcript.keep(step, path, unreadable_tool_call=call)
        return
    function = call.get("function")
    inner = function if isinstance(function, dict) else {**call, "name": function or call.get("name")}
    arguments = next((inner[key] for key in ("arguments", "args", "input") if key in inner), None)
    transcript.call(step, call.get("id"), inner.get("name"), arguments, parse_error=call.get("parse_error"))


def _read(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def _rest(transcript: Transcript, step: Step, message: dict[str, Any], path: str) -> None:
    odd = {name: value for name, value in message.items() if name not in _READ and value not in (None, [], {}, "")}
    plain = {name: odd.pop(name) for name in list(odd) if name in _ORDINARY}
    if step["source"] == "agent" and isinstance(plain.get("model"), str):
        step["model_name"] = plain.pop("model")
    if plain:
        step.setdefault("extra", {}).update(plain)
    transcript.keep(step, path, **odd)
