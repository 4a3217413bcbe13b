"""NeMo Gym rollouts and failures as JSON Lines: an OpenAI Responses conversation, its reward and what the verifier returned with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from inspector.formats import _chat
from inspector.formats._draft import Asked, Draft
from inspector.formats._files import Kind, Peek, Refused, Row, rows
from inspector.formats._transcript import Step, Transcript, final_metrics, joined

NAME = "nemo_gym"
VERSION = 1
_PLAIN = frozenset({"responses_create_params", "response", "reward", "_ng_task_index", "_ng_rollout_index", "terminated", "truncated", "reward_components"})
_TASK = ("task_id", "instance_id", "hashid", "uuid")
_CARRIED = frozenset({"input", "tools"})  # of the request; the rest of it goes under extra


def looks_like(peek: Peek) -> float:
    """A request and a response of the Responses API beside each other."""
    if peek.kind is not Kind.ROWS or not isinstance(peek.first.get("responses_create_params"), dict):
        return 0.0
    return 1.0 if {"response", "_ng_failure_class"} & set(peek.first) else 0.5


def convert(path: Path, asked: Asked) -> Iterator[Draft | Refused]:
    """One trajectory a row; rows of one task are a group where the file has several."""
    overview = _Overview(path)
    for row in rows(path):
        if isinstance(row, Refused):
            yield row
        elif not isinstance(row.value, dict) or not isinstance(row.value.get("responses_create_params"), dict):
            yield Refused(row.source, "has no object `responses_create_params`")
        else:
            yield _rollout(row, path, asked, overview)


class _Overview:
    """What a row alone cannot tell: how many rollouts of each task a file holds, and whether a response id names one of them only."""

    def __init__(self, path: Path) -> None:
        self.stem = _stem(path)
        self.digest = ""
        self.sizes: Counter[tuple[str, Any]] = Counter()
        self.ids: Counter[Any] = Counter()
        for row in rows(path):
            if isinstance(row, Row) and isinstance(row.value, dict):
                self.digest = self.digest or Draft.of(row).digest[:12]
                self.sizes[_task_key(row.value)] += 1
                self.ids[_response_id(row.value)] += 1

    def own_id(self, value: dict[str, Any]) -> str | None:
        """The response's id, unless it is a placeholder that other rows have too."""
        found = _response_id(value)
        return found if self.ids[found] == 1 else None

    def group(self, value: dict[str, Any]) -> dict[str, Any] | None:
        key = _task_key(value)
        if key[1] is None or self.sizes[key] < 2:
            return None
        index = value.get("_ng_rollout_index")
        return {"id": f"{self.stem}-{self.digest}-task-{key[1]}", "index": index if isinstance(index, int) else None, "size": self.sizes[key]}


def _task_key(value: dict[str, Any]) -> tuple[str, Any]:
    index = value.get("_ng_task_index")
    return _agent(value), index if isinstance(index, int) else None


def _response_id(value: dict[str, Any]) -> str | None:
    found = _object(value.get("response")).get("id")
    return found if isinstance(found, str) else None


def _agent(value: dict[str, Any]) -> str:
    ref = value.get("agent_ref")
    return str(ref.get("name") or "") if isinstance(ref, dict) else ""


def _stem(path: Path) -> str:
    return path.name.split(".")[0][:80] or NAME


def _rollout(row: Row, path: Path, asked: Asked, overview: _Overview) -> Draft:
    value, draft = row.value, Draft.of(row)
    request, response = value["responses_create_params"], _object(value.get("response"))
    transcript = Transcript()
    _prompt(transcript, request)
    own = len(transcript.steps)
    _items(transcript, response.get("output"), "$.response.output", own)
    used = _object(response.get("usage"))
    totals = final_metrics(used.get("input_tokens"), used.get("output_tokens"), _object(used.get("input_tokens_details")).get("cached_tokens"))
    agent = _agent(value)
    draft.told(transcript, agent=agent or NAME, model=response.get("model") or request.get("model"), tools=request.get("tools"), final_metrics=totals)
    draft.environment = agent or value.get("environment") or value.get("env_name") or (None if asked.environment else _named_by_path(path))
    draft.task = next((value[name] for name in _TASK if isinstance(value.get(name), (str, int))), value.get("_ng_task_index"))
    draft.id = overview.own_id(value)
    draft.put("group", overview.group(value))
    draft.score(value.get("reward"))
    if isinstance(value.get("reward_components"), dict):
        draft.components(value["reward_components"], "$.reward_components")
    _ended(draft, value, response)
    draft.extra |= {name: one for name, one in value.items() if name not in _PLAIN}
    draft.extra |= {"request": _said(request, _CARRIED), "response": _said(response, frozenset({"output", "tools"}))}
    return draft


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _said(value: dict[str, Any], without: frozenset[str]) -> dict[str, Any]:
    return {name: one for name, one in value.items() if name not in without and one is not None}


def _named_by_path(path: Path) -> str:
    """Gym keeps the rollouts of an environment in `<environment>/data/`."""
    return path.parent.parent.name if path.parent.name == "data" and path.parent.parent.name else _stem(path)


def _prompt(transcript: Transcript, request: dict[str, Any]) -> None:
    if isinstance(request.get("instructions"), str) and request["instructions"]:
        transcript.say("system", request["instructions"], "$.responses_create_params.instructions")
    told = request.get("input")
    _items(transcript, [{"role": "user", "content": told}] if isinstance(told, str) else told, "$.responses_create_params.input", 0)
    for step in transcript.steps:
        if step["source"] == "agent":
            step["is_copied_context"] = True  # history that the request came with; this episode did not make it


def _items(transcript: Transcript, items: Any, path: str, start: int) -> None:
    """Responses items, in order; `start` is the first step that they may continue."""
    for at, item in enumerate(items if isinstance(items, Sequence) and not isinstance(items, str) else []):
        here = f"{path}[{at}]"
        kind = item.get("type") if isinstance(item, dict) else None
        if not isinstance(item, dict):
            transcript.keep(transcript.say("system", "", here), here, unknown_item=item)
        elif kind == "reasoning":
            _reasoning(transcript, item, here, start)
        elif kind == "function_call":
            step = _turn(transcript, start, here, ends=("observation",))
            transcript.call(step, item.get("call_id") or item.get("id"), item.get("name"), item.get("arguments"), **_marks(item))
        elif kind == "function_call_output":
            transcript.observe(item.get("call_id"), item.get("output"), here)
        elif kind in ("message", None) and "role" in item:
            _message(transcript, item, here, start)
        else:
            transcript.keep(_turn(transcript, start, here, ends=()), here, **{f"unknown_item_{at}": item})


def _message(transcript: Transcript, item: dict[str, Any], path: str, start: int) -> None:
    if item.get("role") != "assistant":
        _chat.add(transcript, [item], path)
        return
    before = transcript.steps[-1] if len(transcript.steps) > start else None
    thought = before if before is not None and set(before) <= {"step_id", "source", "message", "reasoning_content", "extra"} and _only_thought(before) else None
    _chat.add(transcript, [{name: one for name, one in item.items() if name not in ("type", "status") or one not in ("message", "completed")}], path)
    if thought is not None:
        _merge(transcript, thought)


def _only_thought(step: Step) -> bool:
    return step["source"] == "agent" and not step["message"] and bool(step.get("reasoning_content"))


def _merge(transcript: Transcript, thought: Step) -> None:
    """Make the last step, a message, one turn with the reasoning before it."""
    said = transcript.steps.pop()
    thought["message"] = said["message"]
    if "extra" in said:
        thought["extra"] = {**thought.get("extra", {}), **said["extra"]}


def _reasoning(transcript: Transcript, item: dict[str, Any], path: str, start: int) -> None:
    step = _turn(transcript, start, path, ends=("observation", "tool_calls", "message"))
    parts = [part for name in ("content", "summary") if isinstance(item.get(name), list) for part in item[name]]
    thought = joined([part.get("text") if isinstance(part, dict) else part for part in parts])
    if thought:
        transcript.think(step, thought)
    transcript.keep(step, path, encrypted_content=item.get("encrypted_content"))


def _turn(transcript: Transcript, start: int, path: str, ends: tuple[str, ...]) -> Step:
    """The agent's open turn, or a new one where any of `ends` already closed it."""
    last = transcript.steps[-1] if len(transcript.steps) > start else None
    if last is not None and last["source"] == "agent" and not any(last.get(name) for name in ends):
        return last
    return transcript.say("agent", "", path)


def _marks(item: dict[str, Any]) -> dict[str, Any]:
    status = item.get("status")
    return {"item_id": item.get("id") if item.get("id") != item.get("call_id") else None, "status": status if status != "completed" else None}


def _ended(draft: Draft, value: dict[str, Any], response: dict[str, Any]) -> None:
    cut = _object(response.get("incomplete_details")).get("reason")
    truncated = value.get("truncated") if isinstance(value.get("truncated"), bool) else None
    if cut:
        draft.put("termination", {"reason": "max_tokens" if cut == "max_output_tokens" else str(cut)[:200], "truncated": True})
    elif value.get("terminated") is True or truncated is not None:
        draft.put("termination", {"reason": "completed" if value.get("terminated") is True else None, "truncated": truncated})
    errors: list[dict[str, Any]] = []
    if isinstance(response.get("error"), dict):
        errors.append(
            {"type": str(response["error"].get("code") or "error")[:200], "boundary": "provider", "message": str(response["error"].get("message") or "")}
        )
    if value.get("_ng_failure_class"):
        errors.append({"type": str(value["_ng_failure_class"])[:200], "message": str(value.get("_ng_failure_message") or value.get("error") or "") or None})
    draft.put("errors", errors or None)
