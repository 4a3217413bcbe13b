"""Rollouts that verifiers saved: `results.jsonl` (prompt and completion) and `traces.jsonl` (episodes of message graphs)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inspector.errors import UnreadableInput
from inspector.formats import _chat
from inspector.formats._draft import Asked, Draft
from inspector.formats._files import Kind, Peek, Refused, Row, rows, whole
from inspector.formats._json import NotJson, decode
from inspector.formats._json import text as json_text
from inspector.formats._transcript import Step, Transcript, final_metrics, is_number

NAME = "verifiers"
VERSION = 1
_METADATA = "metadata.json"
_BOUNDARIES = ("provider", "harness", "tool", "sandbox", "task")  # as verifiers names its errors: ProviderError, ToolsetError, …
_ENDED = {
    "max_turns_reached": "max_steps",
    "max_turns": "max_steps",
    "prompt_too_long": "max_tokens",
    "length": "max_tokens",
    "timeout": "timeout",
    "has_error": "error",
}
_ROW = frozenset(
    {
        "prompt",
        "completion",
        "reward",
        "example_id",
        "id",
        "stop_condition",
        "is_truncated",
        "error",
        "metrics",
        "tool_defs",
        "oai_tools",
        "token_usage",
        "trajectory",
    }
)
_TRACE = frozenset({"nodes", "id", "tools", "rewards", "errors", "is_truncated", "is_timeout", "stop_condition", "timing", "calls", "task", "agent"})


def looks_like(peek: Peek) -> float:
    """An episode with traces, a trace with nodes, or an example's prompt and completion."""
    first = peek.first
    if peek.kind is not Kind.ROWS:
        return 0.0
    if isinstance(first.get("traces"), list) and {"env", "task"} & set(first):
        return 1.0
    if isinstance(first.get("nodes"), list) and "task" in first:
        return 0.95
    return 0.9 if "completion" in first and "prompt" in first and "example_id" in first else 0.0


def convert(path: Path, asked: Asked) -> Iterator[Draft | Refused]:
    """One trajectory a row of results, one a trace of an episode."""
    about = _about(path)
    for row in rows(path):
        if isinstance(row, Refused):
            yield row
        elif not isinstance(row.value, dict):
            yield Refused(row.source, "is not an object")
        elif isinstance(row.value.get("traces"), list):
            yield from _episode(row)
        elif isinstance(row.value.get("nodes"), list):
            yield _trace(Draft.of(row), row.value, {})
        elif "completion" in row.value:
            yield _result(row, about)
        else:
            yield Refused(row.source, "has neither `traces`, nor `nodes`, nor `prompt` and `completion`")


def _about(path: Path) -> dict[str, Any]:
    """What verifiers wrote of the whole evaluation, beside the results."""
    beside = path.parent / _METADATA
    if not beside.is_file():
        return {}
    try:
        found, _ = decode(whole(beside))
    except (UnreadableInput, NotJson):
        return {}  # only a help: without it the environment is what the caller says
    return found if isinstance(found, dict) else {}


def _result(row: Row, about: dict[str, Any]) -> Draft:
    value, draft, transcript = row.value, Draft.of(row), Transcript()
    for name, role in (("prompt", "user"), ("completion", "assistant")):
        said = value.get(name)
        _chat.add(transcript, said if isinstance(said, list) else [{"role": role, "content": said}] if said else [], f"$.{name}", copied=name == "prompt")
    used = _object(value.get("token_usage"))
    totals = final_metrics(used.get("input_tokens"), used.get("output_tokens"))
    draft.told(transcript, agent=NAME, model=about.get("model"), tools=value.get("tool_defs") or value.get("oai_tools"), final_metrics=totals)
    example = value.get("example_id", value.get("id"))
    draft.environment, draft.version, draft.task = _environment(about.get("env_id")), about.get("env_version") or about.get("version"), example
    draft.score(value.get("reward"))
    _result_ended(draft, value)
    each = about.get("rollouts_per_example")
    if isinstance(each, int) and each > 1 and example is not None:
        draft.put("group", {"id": f"{about.get('env_id')}-{about.get('time', about.get('date', ''))}-{example}"[:200], "size": each})
    draft.extra |= {name: one for name, one in value.items() if name not in _ROW and one is not None}
    if value.get("trajectory"):
        draft.lose("$.trajectory", "the model calls one by one repeat prompt and completion; not carried")
    return draft


def _environment(name: Any) -> Any:
    return name if isinstance(name, str) and "/" in name else f"{NAME}/{name}" if name else None


def _result_ended(draft: Draft, value: dict[str, Any]) -> None:
    if isinstance(value.get("metrics"), dict):
        draft.extra["metrics"] = value["metrics"]
    stop, cut = value.get("stop_condition"), value.get("is_truncated")
    if stop or cut is not None:
        draft.put("termination", _termination(stop, cut, None))
    error = value.get("error")
    if isinstance(error, dict):
        draft.put("errors", [_error(error.get("error"), error.get("error_chain_str") or error.get("message"))])
    elif error:
        draft.put("errors", [_error(None, error)])


def _termination(stop: Any, truncated: Any, timed_out: Any) -> dict[str, Any]:
    reason = _ENDED.get(stop, stop[:200]) if isinstance(stop, str) and stop else None
    return {"reason": reason, "truncated": truncated if isinstance(truncated, bool) else None, "timed_out": timed_out if isinstance(timed_out, bool) else None}


def _error(kind: Any, message: Any) -> dict[str, Any]:
    name = str(kind) if kind else ""
    boundary = next((side for side in _BOUNDARIES if name.lower().startswith(side)), None)
    return {"type": name[:200] or None, "boundary": boundary, "message": str(message) if message is not None else None}


# --- traces ----------------------------------------------------------------------------------------------------------


def _episode(row: Row) -> Iterator[Draft | Refused]:
    episode = row.value
    if not episode["traces"]:
        yield Refused(row.source, "an episode without traces: there is nothing that an agent did")
    for at, trace in enumerate(episode["traces"]):
        source = f"{row.source}[{at}]"
        if not isinstance(trace, dict) or not isinstance(trace.get("nodes"), list):
            yield Refused(source, "a trace without a list `nodes`")
            continue
        draft = Draft(source, json_text(trace).encode(), row.at * 1000 + at, lost=list(row.lost))
        yield _trace(draft, trace, episode)


def _trace(draft: Draft, trace: dict[str, Any], episode: dict[str, Any]) -> Draft:
    transcript = Transcript()
    _nodes(transcript, trace["nodes"])
    agent, task = _object(trace.get("agent")), _object(trace.get("task")) or _object(episode.get("task"))
    settings = _object(agent.get("config"))
    model = settings.get("model") if isinstance(settings.get("model"), str) else _object(settings.get("model")).get("name")
    usage = [call["usage"] for call in trace.get("calls") or [] if isinstance(call, dict) and isinstance(call.get("usage"), dict)]
    totals = final_metrics(*(_sum(usage, names) for names in (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"))))
    draft.told(transcript, agent=str(agent.get("name") or NAME), model=model, tools=trace.get("tools"), final_metrics=totals)
    env = _object(episode.get("env")) or _object(trace.get("env"))
    draft.id, draft.environment, draft.version = trace.get("id"), _environment(env.get("id") or env.get("name")), env.get("version")
    draft.task = task.get("key") or task.get("hash")
    if isinstance(task.get("hash"), str):
        draft.fields["task_hash"] = {"hash": task["hash"][:200]}
    _rewarded(draft, trace.get("rewards"))
    _trace_belongs(draft, trace, episode)
    draft.extra |= {name: one for name, one in trace.items() if name not in _TRACE and one not in (None, [], {})}
    draft.extra |= {
        "task": task or None,
        "agent": agent or None,
        "episode": {name: one for name, one in episode.items() if name not in ("traces", "task")} or None,
    }
    return draft


def _sum(usage: list[dict[str, Any]], names: tuple[str, str]) -> Any:
    counts = [one[name] for one in usage for name in names if is_number(one.get(name))]
    return sum(counts) if counts else None


def _nodes(transcript: Transcript, nodes: list[Any]) -> None:
    """Every message of the graph once, in the order it was made; where one does not follow the one before, it says so."""
    steps: dict[int, Step] = {}
    for at, node in enumerate(nodes):
        path, before = f"$.nodes[{at}]", len(transcript.steps)
        message = node.get("message") if isinstance(node, dict) else None
        _chat.add(transcript, [message], f"{path}.message")
        if not isinstance(node, dict) or len(transcript.steps) == before:
            continue
        step = steps[at] = transcript.steps[-1]
        if step["source"] == "agent" and node.get("sampled") is False:
            step["is_copied_context"] = True  # put into the prompt; no model call of this episode made it
        _branch(transcript, step, node, at, path)
        _tokens(transcript, step, node, path)


def _branch(transcript: Transcript, step: Step, node: dict[str, Any], at: int, path: str) -> None:
    parent = node.get("parent")
    if at and parent != at - 1:
        step.setdefault("extra", {})["parent_node"] = parent
        transcript.lost.append(f"{path}.parent: the graph branches here; laid out in the order it was made, the parent is kept under extra")


def _tokens(transcript: Transcript, step: Step, node: dict[str, Any], path: str) -> None:
    """Sampled tokens of an agent's turn as ATIF metrics."""
    ids, mask, logprobs = node.get("token_ids"), node.get("mask"), node.get("logprobs")
    if not ids:
        return
    if step["source"] != "agent" or not isinstance(ids, list) or not isinstance(mask, list) or len(ids) != len(mask):
        transcript.lost.append("$.nodes[*].token_ids: the tokens of prompts are not carried")
        return
    step["metrics"] = {"completion_token_ids": [token for token, made in zip(ids, mask, strict=True) if made]}
    if isinstance(logprobs, list) and len(logprobs) == len(step["metrics"]["completion_token_ids"]):
        step["metrics"]["logprobs"] = logprobs


def _rewarded(draft: Draft, rewards: Any) -> None:
    """The reward is the weighted sum, and unknown as soon as one component was not scored."""
    if not isinstance(rewards, dict) or not rewards:
        return
    scores = {name: one.get("score") if isinstance(one, dict) else one for name, one in rewards.items()}
    weights = {name: one["weight"] for name, one in rewards.items() if isinstance(one, dict) and is_number(one.get("weight"))}
    draft.components(scores, "$.rewards", weights)
    missing = sorted(name for name, score in scores.items() if not is_number(score))
    if not missing:
        draft.score(sum(score * weights.get(name, 1.0) for name, score in scores.items() if score is not None))
    else:
        draft.lose("$.rewards", f"{', '.join(missing)} not scored: the reward is null")


def _trace_belongs(draft: Draft, trace: dict[str, Any], episode: dict[str, Any]) -> None:
    run, group = _object(episode.get("run")), _object(episode.get("group"))
    work = _object(run.get("work"))
    if run.get("id"):
        policy = _object(work.get("policy")).get("start")
        kind = work.get("type") if work.get("type") in ("train", "eval") else "eval"
        step = work.get("step") if isinstance(work.get("step"), int) else None
        version = policy if isinstance(policy, int) else None
        draft.put("run", {"id": str(run["id"])[:200], "trainer": run.get("type"), "work": kind, "step": step, "policy_version": version})
    if group.get("id"):
        draft.put("group", {"id": str(group["id"])[:200]})
    timing = _object(trace.get("timing"))
    draft.moment("started_at", timing.get("start"))
    draft.moment("ended_at", _object(timing.get("scoring")).get("end"))
    late = trace.get("is_timeout", episode.get("is_timeout"))
    if trace.get("stop_condition") or trace.get("is_truncated") is not None or late is not None:
        draft.put("termination", _termination(trace.get("stop_condition"), trace.get("is_truncated"), late))
    errors = trace.get("errors") or episode.get("errors")
    found = [_error(one.get("type"), one.get("message")) for one in errors if isinstance(one, dict)] if isinstance(errors, list) else []
    draft.put("errors", found or None)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
