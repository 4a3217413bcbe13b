"""Brings an ATIF document of any version to what ATIF-v1.8 allows, by moving what does not fit under `extra`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from inspector.formats import _content
from inspector.formats._json import text as json_text
from inspector.formats._transcript import SCHEMA, UNKNOWN
from inspector.trajectory import Agent, Document, ObservationResult, Step, ToolCall

Object = dict[str, Any]
AGENT_ONLY = ("model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics")
_METRICS = {
    "prompt_tokens": int,
    "completion_tokens": int,
    "cached_tokens": int,
    "cost_usd": float,
    "prompt_token_ids": list,
    "completion_token_ids": list,
    "logprobs": list,
}
_TOTALS = {"total_prompt_tokens": int, "total_completion_tokens": int, "total_cached_tokens": int, "total_cost_usd": float, "total_steps": int}
_REF = {"trajectory_id": str, "trajectory_path": str, "session_id": str}
_ROOT = {"session_id": str, "trajectory_id": str, "notes": str, "continued_trajectory_ref": str, "final_metrics": dict, "subagent_trajectories": list}
_AGENT = {"model_name": str, "tool_definitions": list}
_STEP = {
    "timestamp": str,
    "model_name": str,
    "reasoning_content": str,
    "tool_calls": list,
    "observation": dict,
    "metrics": dict,
    "llm_call_count": int,
    "is_copied_context": bool,
}


def is_atif(document: Any) -> bool:
    """Whether this is an ATIF document, by its own word or by its shape."""
    if not isinstance(document, dict) or not isinstance(document.get("steps"), list):
        return False
    steps = document["steps"]
    return str(document.get("schema_version", "")).startswith("ATIF") or (bool(steps) and isinstance(steps[0], dict) and {"source", "step_id"} <= set(steps[0]))


def tidied(document: Object, path: str = "$.trajectory") -> tuple[Object, list[str]]:
    """(a document that ATIF-v1.8 accepts, what was moved or put in to make it so). The one given is left as it is."""
    tidy = _Tidy()
    return tidy.root(document, path), tidy.notes


class _Tidy:
    def __init__(self) -> None:
        self.notes: list[str] = []

    def root(self, document: Object, path: str) -> Object:
        found = self.known(document, set(Document.__struct_fields__), path)
        self.typed(found, _ROOT, path)
        version = found.get("schema_version")
        if not (isinstance(version, str) and version.startswith("ATIF-v1.")):
            found["schema_version"] = SCHEMA
        found["agent"] = self.agent(found.get("agent"), f"{path}.agent")
        given = found.get("steps")
        steps = given if isinstance(given, list) else []
        self.move(found, "unreadable_steps", [step for step in steps if not isinstance(step, dict)] or None, f"{path}.steps")
        found["steps"] = [self.step(step, at, f"{path}.steps[{at}]") for at, step in enumerate(step for step in steps if isinstance(step, dict))]
        if "final_metrics" in found:
            found["final_metrics"] = self.numbers(found["final_metrics"], _TOTALS, f"{path}.final_metrics")
        if "subagent_trajectories" in found:
            found["subagent_trajectories"] = self.subagents(found, path)
        return found

    def subagents(self, root: Object, path: str) -> list[Object]:
        found, seen = [], set()
        for at, child in enumerate(root["subagent_trajectories"]):
            here = f"{path}.subagent_trajectories[{at}]"
            if not isinstance(child, dict):
                self.move(root, f"subagent_{at}", child, here)
                continue
            tidy = self.root(child, here)
            if not isinstance(tidy.get("trajectory_id"), str) or tidy["trajectory_id"] in seen:
                self.notes.append(f"{here}.trajectory_id: is missing or not unique; numbered")
                tidy["trajectory_id"] = f"subagent-{at + 1}"
            seen.add(tidy["trajectory_id"])
            found.append(tidy)
        return found

    def agent(self, agent: Any, path: str) -> Object:
        given: Object = agent if isinstance(agent, dict) else {"name": agent} if isinstance(agent, str) else {}
        found = self.known(given, set(Agent.__struct_fields__), path)
        self.typed(found, _AGENT, path)
        for name in ("name", "version"):
            if not isinstance(found.get(name), str):
                self.notes.append(f"{path}.{name}: is missing; {UNKNOWN!r} put in")
                found[name] = UNKNOWN if found.get(name) is None else str(found[name])
        if "tool_definitions" in found:
            found["tool_definitions"] = [tool if isinstance(tool, dict) else {"definition": tool} for tool in found["tool_definitions"]]
        return found

    def step(self, step: Object, at: int, path: str) -> Object:
        found = self.known(step, set(Step.__struct_fields__), path)
        self.typed(found, _STEP, path)
        if found.get("source") not in ("system", "user", "agent"):
            self.move(found, "source", found.get("source"), f"{path}.source")
            found["source"] = "system"
        if found.get("step_id") != at + 1 or isinstance(found.get("step_id"), bool):
            self.move(found, "step_id", found.get("step_id"), f"{path}.step_id")
            found["step_id"] = at + 1
        found["message"] = self.content(found, "message", path) or ""
        self.step_only_of_agents(found, path)
        if not _is_time(found.get("timestamp", "2026-01-01")):
            self.move(found, "timestamp", found.pop("timestamp"), f"{path}.timestamp")
        if not isinstance(found.get("reasoning_effort", ""), (str, int, float)):
            self.move(found, "reasoning_effort", found.pop("reasoning_effort"), f"{path}.reasoning_effort")
        if found.get("llm_call_count", 0) < 0:
            self.move(found, "llm_call_count", found.pop("llm_call_count"), f"{path}.llm_call_count")
        if "metrics" in found:
            found["metrics"] = self.numbers(found["metrics"], _METRICS, f"{path}.metrics")
        if "tool_calls" in found:
            found["tool_calls"] = self.calls(found, path)
        if "observation" in found:
            found["observation"] = {"results": self.results(found, path)}
        return found

    def step_only_of_agents(self, step: Object, path: str) -> None:
        banned = AGENT_ONLY if step["source"] != "agent" else ("metrics", "reasoning_content") if step.get("llm_call_count") == 0 else ()
        for name in banned:
            if name in step:
                self.move(step, name, step.pop(name), f"{path}.{name}")

    def calls(self, step: Object, path: str) -> list[Object]:
        found = []
        for at, call in enumerate(step["tool_calls"]):
            here = f"{path}.tool_calls[{at}]"
            if not isinstance(call, dict):
                self.move(step, f"tool_call_{at}", call, here)
                continue
            made = self.known(call, set(ToolCall.__struct_fields__), here)
            if not isinstance(made.get("arguments"), dict):
                self.move(made, "raw_arguments", made.get("arguments"), f"{here}.arguments")
                made["arguments"] = {}
            for name, instead in (("tool_call_id", f"call-{at + 1}"), ("function_name", UNKNOWN)):
                if not isinstance(made.get(name), str):
                    self.move(made, name, made.get(name), f"{here}.{name}")
                    made[name] = instead
            found.append(made)
        return found

    def results(self, step: Object, path: str) -> list[Object]:
        given = step["observation"].get("results")
        others = {name: value for name, value in step["observation"].items() if name != "results"}
        self.move(step, "observation", others or None, f"{path}.observation")
        calls = {call["tool_call_id"] for call in step["tool_calls"]} if "tool_calls" in step else None
        return [self.result(result, calls, f"{path}.observation.results[{at}]") for at, result in enumerate(given if isinstance(given, list) else [])]

    def result(self, result: Any, calls: set[str] | None, path: str) -> Object:
        found = self.known(result if isinstance(result, dict) else {"content": result}, set(ObservationResult.__struct_fields__), path)
        caller = found.get("source_call_id")
        if caller is not None and (not isinstance(caller, str) or (calls is not None and caller not in calls)):
            self.move(found, "source_call_id", found.pop("source_call_id"), f"{path}.source_call_id")
        if found.get("content") is not None:
            found["content"] = self.content(found, "content", path)
        if "subagent_trajectory_ref" in found:
            self.references(found, path)
        return found

    def references(self, result: Object, path: str) -> None:
        refs = result.pop("subagent_trajectory_ref")
        refs = refs if isinstance(refs, list) else [refs]
        good = [ref for ref in refs if isinstance(ref, dict) and isinstance(ref.get("trajectory_id") or ref.get("trajectory_path"), str)]
        if good:
            result["subagent_trajectory_ref"] = [self.numbers(ref, _REF, path) for ref in good]
        self.move(result, "subagent_trajectory_ref", [ref for ref in refs if ref not in good] or None, f"{path}.subagent_trajectory_ref")

    def content(self, holder: Object, name: str, path: str) -> Any:
        value = holder.get(name)
        if _content.is_atif(value):
            return value
        made, kept = _content.content(value)
        self.move(holder, "content_parts", kept or None, f"{path}.{name}")
        return made

    def known(self, given: Object, names: set[str], path: str) -> Object:
        """A copy without nulls; unknown names go under extra."""
        found = {name: value for name, value in given.items() if name in names and value is not None}
        if "extra" in found:
            found["extra"] = dict(found["extra"]) if isinstance(found["extra"], dict) else {"extra": found["extra"]}
        for name, value in given.items():
            if name not in names:
                self.move(found, name, value, f"{path}.{name}")
        return found

    def typed(self, found: Object, kinds: Mapping[str, type], path: str) -> None:
        for name, kind in kinds.items():
            if name in found and not _is(found[name], kind):
                self.move(found, name, found.pop(name), f"{path}.{name}")

    def numbers(self, given: Object, kinds: Mapping[str, type], path: str) -> Object:
        found = self.known(given, {*kinds, "extra"}, path)
        self.typed(found, kinds, path)
        for name in ("prompt_token_ids", "completion_token_ids", "logprobs"):
            kind = float if name == "logprobs" else int
            if isinstance(found.get(name), list) and not all(_is(one, kind) for one in found[name]):
                self.move(found, name, found.pop(name), f"{path}.{name}")
        return found

    def move(self, holder: Object, name: str, value: Any, path: str) -> None:
        """Put `value` under the holder's extra, unless there is nothing to keep, and list it."""
        if value is None:
            return
        holder.setdefault("extra", {}).setdefault(name, value)
        self.notes.append(f"{path}: kept under extra, where ATIF-v1.8 allows it ({json_text(value)[:60]})")


def _is(value: Any, kind: type) -> bool:
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind)


def _is_time(value: str) -> bool:
    try:
        datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        return False
    return True
