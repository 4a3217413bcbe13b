"""SWE-agent `.traj` files: what was tried, what came back, how it ended and the patch that was submitted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inspector.formats import _chat
from inspector.formats._draft import Asked, Draft
from inspector.formats._files import Kind, Peek, Refused, Row, rows
from inspector.formats._json import NotJson, decode
from inspector.formats._transcript import Step, Transcript, final_metrics, joined

NAME = "swe_agent"
VERSION = 1
_SHELL = "bash"  # how an action without a tool call of its own is named: a command line of the agent's shell
_ENDED = {  # by what SWE-agent's exit status begins with: (reason, truncated, timed out)
    "submitted": ("submitted", None, None),
    "exit_context": ("max_tokens", True, None),
    "exit_cost": ("max_cost", True, None),
    "exit_total_execution_time": ("timeout", True, True),
    "exit_command_timeout": ("timeout", True, True),
    "exit_timeout": ("timeout", True, True),
    "exit_forfeit": ("forfeited", None, None),
    "exit_": ("error", None, None),
    "early_exit": ("cancelled", None, None),
}
_BROKEN = {"exit_api": "provider", "exit_environment_error": "sandbox", "exit_error": "harness", "exit_format": None}


def looks_like(peek: Peek) -> float:
    """A list of actions with observations, beside `info` or `history`."""
    steps = peek.first.get("trajectory")
    if peek.kind is not Kind.ROWS or not isinstance(steps, list) or not {"info", "history"} & set(peek.first):
        return 0.0
    return 0.9 if not steps or (isinstance(steps[0], dict) and {"action", "observation"} & set(steps[0])) else 0.0


def convert(path: Path, asked: Asked) -> Iterator[Draft | Refused]:
    """One trajectory a document."""
    for row in rows(path):
        if isinstance(row, Refused):
            yield row
        elif not isinstance(row.value, dict) or not isinstance(row.value.get("trajectory"), list):
            yield Refused(row.source, "has no list `trajectory`")
        else:
            yield _attempt(row, path)


def _attempt(row: Row, path: Path) -> Draft:
    value, draft, transcript = row.value, Draft.of(row), Transcript()
    history = value["history"] if isinstance(value.get("history"), list) else []
    info = value["info"] if isinstance(value.get("info"), dict) else {}
    settings = _settings(value, draft)
    turns = _prompt(transcript, history)
    if value["trajectory"]:
        _actions(transcript, value["trajectory"], turns)
    else:
        _chat.add(transcript, history[len(transcript.steps) :], "$.history")
    model = _inside(settings, "agent", "model", "name")
    draft.told(transcript, agent="SWE-agent", model=model, version=info.get("swe_agent_version"), final_metrics=_totals(info))
    draft.environment = value.get("environment") or None
    draft.task = _inside(settings, "problem_statement", "id") or _inside(settings, "agent", "name") or path.name.split(".traj")[0]
    draft.score(info.get("reward", info.get("resolved")), "$.info.resolved")
    _ended(draft, info)
    draft.extra |= {"info": info, "replay_config": settings or None}
    draft.extra |= {name: one for name, one in value.items() if name not in ("trajectory", "history", "info", "environment", "replay_config")}
    return draft


def _settings(value: dict[str, Any], draft: Draft) -> dict[str, Any]:
    """`replay_config`, which newer releases write as JSON text."""
    given = value.get("replay_config")
    if isinstance(given, str):
        try:
            given, gone = decode(given.encode(errors="replace"))
        except NotJson as error:
            draft.lose("$.replay_config", str(error))
            return {}
        draft.lost += [f"$.replay_config {entry}" for entry in gone]
    return given if isinstance(given, dict) else {}


def _inside(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, str) and value else None


def _prompt(transcript: Transcript, history: list[Any]) -> list[dict[str, Any]]:
    """Write down what the agent was told before it first acted; gives its own turns in the history."""
    turns = [entry for entry in history if isinstance(entry, dict) and entry.get("role") == "assistant" and not entry.get("is_demo")]
    for at, entry in enumerate(history):
        if not isinstance(entry, dict) or (entry.get("role") in ("assistant", "tool") and not entry.get("is_demo")):
            break
        before = len(transcript.steps)
        told = {name: entry[name] for name in ("role", "content", "tool_calls", "tool_call_id", "tool_call_ids") if name in entry}
        _chat.add(transcript, [told], f"$.history[{at}:]")
        for step in transcript.steps[before:] if entry.get("is_demo") else []:
            step["is_copied_context"] = True  # a demonstration out of another episode
    return turns


def _actions(transcript: Transcript, actions: list[Any], turns: list[dict[str, Any]]) -> None:
    aligned = len(turns) == sum(isinstance(action, dict) for action in actions)
    for at, action in enumerate(actions):
        path = f"$.trajectory[{at}]"
        if not isinstance(action, dict):
            transcript.keep(transcript.say("system", "", path), path, not_an_action=action)
            continue
        _action(transcript, action, turns[at] if aligned and at < len(turns) else {}, path)
    if any(isinstance(action, dict) and (action.get("query") or action.get("messages")) for action in actions):
        transcript.lost.append("$.trajectory[*].query: the prompt of each turn repeats the steps before it; not carried")


def _action(transcript: Transcript, action: dict[str, Any], turn: dict[str, Any], path: str) -> None:
    said, thought, command = action.get("response"), action.get("thought"), action.get("action")
    step = transcript.say("agent", said if said else thought, path, thought=thought if said and thought != said else None)
    blocks = action.get("thinking_blocks")
    thinking = joined([block.get("thinking") for block in blocks if isinstance(block, dict)]) if isinstance(blocks, list) else ""
    if thinking:
        transcript.think(step, thinking)
    call_id = _calls(transcript, step, command, turn if turn.get("action") in (None, command) else {}, path)
    if action.get("observation") is not None and (action["observation"] != "" or call_id):
        _observe(transcript, step, call_id, action["observation"], path)
    known = {"action", "observation", "response", "thought", "thinking_blocks", "query", "messages"}
    step.setdefault("extra", {}).update({name: one for name, one in action.items() if name not in known and one not in (None, {}, [])})


def _calls(transcript: Transcript, step: Step, command: Any, turn: dict[str, Any], path: str) -> str | None:
    """The tool calls of the turn; where the model wrote its action as text, that as a command of its shell."""
    made = turn.get("tool_calls")
    if isinstance(made, list) and made:
        for call in made:
            function = call.get("function") if isinstance(call, dict) else None
            inner = function if isinstance(function, dict) else {}
            transcript.call(step, call.get("id") if isinstance(call, dict) else None, inner.get("name"), inner.get("arguments"), action=command)
    elif command:
        transcript.call(step, None, _SHELL, {"command": command if isinstance(command, str) else str(command)})
    calls = step.get("tool_calls")
    return calls[-1]["tool_call_id"] if calls else None


def _observe(transcript: Transcript, step: Step, call_id: str | None, observation: Any, path: str) -> None:
    if call_id is not None:
        transcript.observe(call_id, observation, path)
    else:  # a turn without an action: the harness answered the text itself
        step["observation"] = {"results": [{"content": observation if isinstance(observation, str) else str(observation)}]}


def _totals(info: dict[str, Any]) -> dict[str, Any] | None:
    stats = info["model_stats"] if isinstance(info.get("model_stats"), dict) else {}
    return final_metrics(stats.get("tokens_sent"), stats.get("tokens_received"), cost_usd=stats.get("instance_cost"))


def _ended(draft: Draft, info: dict[str, Any]) -> None:
    status = info.get("exit_status")
    if not isinstance(status, str) or not status:
        return
    inner = status.partition("(")[2].rstrip(")") or status  # "submitted (exit_context)": what the limit cut was submitted
    reason, truncated, timed_out = next((found for start, found in _ENDED.items() if inner.startswith(start)), (status[:200], None, None))
    draft.put("termination", {"reason": reason, "truncated": truncated, "timed_out": timed_out})
    broken = next((start for start in _BROKEN if inner.startswith(start)), None)
    if broken:
        draft.put("errors", [{"type": inner[:200], "boundary": _BROKEN[broken], "message": str(info.get("error") or status)}])
