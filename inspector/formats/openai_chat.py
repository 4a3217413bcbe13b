"""OpenAI chat messages as JSON Lines: `messages`, or `prompt` and `completion`, with whatever else a row says of its reward and task."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inspector.formats import _chat
from inspector.formats._draft import Asked, Draft, envelope_fields
from inspector.formats._files import Kind, Peek, Refused, Row, rows
from inspector.formats._transcript import Transcript, final_metrics

NAME = "openai_chat"
VERSION = 1
_TEAM = "openai_chat"
_MESSAGES = ("messages", "conversations", "conversation")
_ID = ("id", "trajectory_id", "uuid", "rollout_id", "request_id")
_TASK = ("task_id", "task", "example_id", "problem_id", "question_id", "instance_id")
_ENVIRONMENT = ("environment", "env", "env_id", "env_name", "environment_id")
_VERSION = ("environment_version", "env_version")
_TOOLS = ("tools", "functions", "tool_definitions")
_ENDED = {"stop": ("completed", False), "length": ("max_tokens", True), "tool_calls": ("completed", False)}


def looks_like(peek: Peek) -> float:
    """Messages with roles; rather another format where that one is sure of itself."""
    if peek.kind is not Kind.ROWS:
        return 0.0
    if any(_is_messages(peek.first.get(name)) for name in _MESSAGES):
        return 0.6
    prompt, completion = peek.first.get("prompt"), peek.first.get("completion")
    return 0.4 if completion is not None and (_is_messages(prompt) or isinstance(prompt, str)) else 0.0


def _is_messages(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and bool({"role", "from"} & set(value[0]))


def convert(path: Path, asked: Asked) -> Iterator[Draft | Refused]:
    """One trajectory a row."""
    for row in rows(path):
        yield row if isinstance(row, Refused) else chat(row)


def chat(row: Row) -> Draft | Refused:
    """The draft of one row."""
    value = {"messages": row.value} if _is_messages(row.value) else row.value
    if not isinstance(value, dict):
        return Refused(row.source, "is not an object with messages")
    draft, transcript, rest = Draft.of(row), Transcript(), dict(value)
    if not _converse(transcript, rest):
        return Refused(row.source, "has neither `messages` nor `prompt` and `completion`")
    _identify(draft, rest)
    draft.score(rest.pop("reward") if "reward" in rest else rest.pop("score", None))  # a reward of null was not scored, whatever else there is
    _fields(draft, rest)
    usage = rest.get("usage")
    totals = final_metrics(usage.get("prompt_tokens"), usage.get("completion_tokens")) if isinstance(usage, dict) else None
    draft.told(transcript, agent=_text(rest, "agent") or NAME, model=_text(rest, "model"), tools=_taken(rest, _TOOLS), final_metrics=totals)
    draft.extra |= rest
    return draft


def _converse(transcript: Transcript, rest: dict[str, Any]) -> bool:
    for name in _MESSAGES:
        if isinstance(rest.get(name), list):
            _chat.add(transcript, rest.pop(name), f"$.{name}")
            return True
    if "completion" not in rest:
        return False
    prompt, completion = rest.pop("prompt", None), rest.pop("completion")
    _chat.add(transcript, prompt if isinstance(prompt, list) else [{"role": "user", "content": prompt}], "$.prompt", copied=True)
    _chat.add(transcript, completion if isinstance(completion, list) else [{"role": "assistant", "content": completion}], "$.completion")
    return True


def document(prompt: Any, completion: Any, *, agent: str, model: str | None = None) -> dict[str, Any]:
    """An ATIF document of one rollout: each side is a text, or messages."""
    transcript = Transcript()
    _converse(transcript, {"prompt": prompt, "completion": completion})
    return transcript.document(agent, model)


def _identify(draft: Draft, rest: dict[str, Any]) -> None:
    draft.id = _taken(rest, _ID)
    environment, task = _taken(rest, _ENVIRONMENT), _taken(rest, _TASK)
    if isinstance(environment, dict):
        draft.environment, draft.version = environment.get("id") or environment.get("name"), environment.get("version")
    else:
        draft.environment = environment
    draft.version = draft.version or _taken(rest, _VERSION)
    draft.task = (task.get("id") or task.get("key")) if isinstance(task, dict) else task
    if isinstance(task, dict) and isinstance(task.get("hash"), str):
        draft.fields["task_hash"] = {"hash": task["hash"][:200]}


def _fields(draft: Draft, rest: dict[str, Any]) -> None:
    rewards = rest.get("rewards")
    if isinstance(rewards, dict) and all(not isinstance(one, dict) for one in rewards.values()):
        draft.components(rest.pop("rewards"), "$.rewards")
    for name in sorted(envelope_fields() & set(rest)):
        draft.put(name, rest.pop(name))
    group = _taken(rest, ("group_id",))
    if group is not None and "group" not in draft.fields:
        draft.put("group", {"id": str(group)})
    finish = rest.get("finish_reason")
    if isinstance(finish, str) and "termination" not in draft.fields:
        reason, truncated = _ENDED.get(finish, (finish[:200], None))
        draft.put("termination", {"reason": reason, "truncated": truncated})


def _taken(rest: dict[str, Any], names: tuple[str, ...]) -> Any:
    """The first of these that is there, taken out of the rest."""
    return next((rest.pop(name) for name in names if rest.get(name) is not None), None)


def _text(rest: dict[str, Any], name: str) -> str | None:
    return rest.pop(name) if isinstance(rest.get(name), str) else None
