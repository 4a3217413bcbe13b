"""Writes down a conversation as the steps of an ATIF document, whatever order its pieces come in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from inspector.formats._content import content as atif_content
from inspector.formats._json import text as json_text

Step = dict[str, Any]
UNKNOWN = "unknown"
SCHEMA = "ATIF-v1.8"


@dataclass
class _Caller:
    step: Step
    call_id: str
    answered: bool = False


class Transcript:
    """Steps in the order of the conversation; tool output goes to the step that called for it."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.lost: list[str] = []
        self._callers: dict[str, list[_Caller]] = {}  # by the call's original id, which some harnesses use again
        self._calls = 0

    def say(self, source: str, content: Any, path: str, **extra: Any) -> Step:
        """A system or user message, or what the agent said; `extra` of None is left out."""
        message, kept = atif_content(content)
        step: Step = {"step_id": len(self.steps) + 1, "source": source, "message": message}
        self.steps.append(step)
        self.keep(step, path, content_parts=kept or None)
        _extend(step, extra)
        return step

    def think(self, step: Step, thought: str) -> None:
        """Reasoning of an agent step; a second piece is joined to the first."""
        before = step.get("reasoning_content")
        step["reasoning_content"] = f"{before}\n\n{thought}" if before else thought

    def call(self, step: Step, call_id: Any, name: Any, arguments: Any, **extra: Any) -> None:
        """A tool call of an agent step. Arguments that are not a JSON object stay as raw text under extra."""
        self._calls += 1
        original = str(call_id) if call_id else f"call-{self._calls}"
        calls = step.setdefault("tool_calls", [])
        unique = original if all(made["tool_call_id"] != original for made in calls) else f"{original}#{len(calls) + 1}"
        read, raw = _arguments(arguments)
        made = {"tool_call_id": unique, "function_name": str(name) if name else UNKNOWN, "arguments": read}
        calls.append(made)
        _extend(made, {"tool_call_id": original if unique != original else None, "raw_arguments": raw, **extra})
        self._callers.setdefault(original, []).append(_Caller(step, unique))

    def observe(self, call_id: Any, content: Any, path: str, **extra: Any) -> None:
        """What came back from a call. Without a call that it answers it goes to the last agent step, and is listed."""
        observed, kept = atif_content(content)
        step, known = self._caller(call_id, path)
        result: dict[str, Any] = {"content": observed} if known is None else {"source_call_id": known, "content": observed}
        step.setdefault("observation", {"results": []})["results"].append(result)
        self.keep(result, path, content_parts=kept or None)
        _extend(result, {"source_call_id": str(call_id) if known is None and call_id else None, **extra})

    def _caller(self, call_id: Any, path: str) -> tuple[Step, str | None]:
        callers = self._callers.get(str(call_id)) if call_id else None
        if callers:
            caller = next((one for one in callers if not one.answered), callers[-1])
            caller.answered = True
            return caller.step, caller.call_id
        if not call_id and self.steps and (unanswered := _unanswered(self.steps[-1])):
            return self.steps[-1], unanswered
        self.lost.append(f"{path}: answers no call of this record; kept as an observation without one")
        agent = next((step for step in reversed(self.steps) if step["source"] == "agent"), None)
        return agent or self.say("system", "", path), None

    def keep(self, target: dict[str, Any], path: str, **odd: Any) -> None:
        """Put what ATIF has no place for under `extra`, and list it."""
        found = {name: value for name, value in odd.items() if value is not None}
        _extend(target, found)
        self.lost += [f"{path}: {name.replace('_', ' ')} kept under extra" for name in found]

    def document(self, agent: str, model: Any = None, *, version: Any = None, tools: Any = None, **root: Any) -> dict[str, Any]:
        """The whole as an ATIF document."""
        who: dict[str, Any] = {"name": agent or UNKNOWN, "version": str(version) if version else UNKNOWN}
        if isinstance(model, str) and model:
            who["model_name"] = model
        if isinstance(tools, list) and tools:
            who["tool_definitions"] = [tool if isinstance(tool, dict) else {"definition": tool} for tool in tools]
        return {"schema_version": SCHEMA, "agent": who, "steps": self.steps, **{name: value for name, value in root.items() if value is not None}}


def _extend(target: dict[str, Any], extra: dict[str, Any]) -> None:
    found = {name: value for name, value in extra.items() if value is not None}
    if found:
        target.setdefault("extra", {}).update(found)


def _unanswered(step: Step) -> str | None:
    answered = {result.get("source_call_id") for result in step.get("observation", {}).get("results", ())}
    return next((call["tool_call_id"] for call in step.get("tool_calls", ()) if call["tool_call_id"] not in answered), None)


def _arguments(value: Any) -> tuple[dict[str, Any], Any]:
    """(arguments as an object, the original where it is none)."""
    if value is None or value == "":
        return {}, None
    if isinstance(value, dict):
        return value, None
    try:
        read = msgspec.json.decode(value) if isinstance(value, str) else value
    except (msgspec.DecodeError, RecursionError):
        return {}, value
    return (read, None) if isinstance(read, dict) else ({}, value)


def final_metrics(
    prompt: Any = None, completion: Any = None, cached: Any = None, cost_usd: Any = None, extra: dict[str, Any] | None = None
) -> dict[str, Any] | None:
    """ATIF's totals out of whatever counts there are; None where there are none."""
    counts = {"total_prompt_tokens": prompt, "total_completion_tokens": completion, "total_cached_tokens": cached}
    found: dict[str, Any] = {name: int(count) for name, count in counts.items() if is_number(count) and count >= 0}
    if is_number(cost_usd):
        found["total_cost_usd"] = float(cost_usd)
    if extra:
        found["extra"] = extra
    return found or None


def is_number(value: Any) -> bool:
    """A number, and not a truth value."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def joined(texts: Sequence[Any]) -> str:
    """Pieces of text as one."""
    return "\n\n".join(text if isinstance(text, str) else json_text(text) for text in texts if text)
