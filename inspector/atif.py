"""The rules of ATIF 1.0 to 1.8 that types do not express; each broken one is a defect of the record."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec

from inspector.showable import showable
from inspector.trajectory import Agent, ContentPart, Defect, Document, Observation, Source, Step, ToolCall

VERSIONS = frozenset(f"ATIF-v1.{minor}" for minor in range(9))
KEPT = 200  # defects listed one by one; the rest are counted
IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
SOUNDS = frozenset(f"audio/{kind}" for kind in ("wav", "mpeg", "mp4", "aac", "ogg", "flac", "webm", "aiff"))
SOUND_ALIASES = frozenset(f"audio/{kind}" for kind in ("mp3", "mpga", "x-mpeg", "x-wav", "wave", "vnd.wave", "x-m4a", "m4a", "x-aac", "x-flac", "x-aiff"))
AGENT, AGENT_ONLY = Source.AGENT, ("model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics")


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """What `step.metrics` may hold."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    prompt_token_ids: list[int] | None = None
    completion_token_ids: list[int] | None = None
    logprobs: list[float] | None = None
    extra: dict[str, Any] | None = None


class FinalMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """What `final_metrics` may hold."""

    total_prompt_tokens: int | None = None
    total_completion_tokens: int | None = None
    total_cached_tokens: int | None = None
    total_cost_usd: float | None = None
    total_steps: int | None = None
    extra: dict[str, Any] | None = None


class SubagentRef(msgspec.Struct, frozen=True, kw_only=True):
    """Where the trajectory of a delegated piece of work is."""

    trajectory_id: str | None = None
    trajectory_path: str | None = None
    session_id: str | None = None
    extra: dict[str, Any] | None = None


class MediaSource(msgspec.Struct, frozen=True, kw_only=True):
    """Where an image or a sound is."""

    media_type: str
    path: str
    duration_sec: Annotated[float, msgspec.Meta(ge=0)] | None = None  # of sounds only


class Defects:
    """Collects defects, and counts what is too much to list."""

    def __init__(self) -> None:
        self._untidy: list[Defect] = []
        self._grave: list[Defect] = []
        self._more = 0

    def add(self, path: str, message: str, *, grave: bool = False) -> None:
        """Note that the value at `path` breaks a rule."""
        kept = self._grave if grave else self._untidy
        if len(kept) < KEPT:
            kept.append(Defect(path=path, message=message, grave=grave))
        else:
            self._more += 1

    def listed(self) -> tuple[Defect, ...]:
        """The grave ones first."""
        if not self._more:
            return (*self._grave, *self._untidy)
        return (*self._grave, *self._untidy, Defect(path="$", message=f"and {self._more} more defects, not listed one by one"))


def shown(value: object) -> str:
    """A value of a record as a message may quote it."""
    return repr(showable(value, limit=100)) if isinstance(value, str) else showable(repr(value), limit=100)


_COUNTS = {"prompt_tokens", "completion_tokens", "cached_tokens"}  # of a step: mostly these alone


def check(document: Document, path: str, defects: Defects) -> None:
    """Every rule of the document but those of its embedded subagents."""
    if document.schema_version not in VERSIONS:
        what = "missing" if document.schema_version is None else f"{shown(document.schema_version)} is not one of ATIF-v1.0 to ATIF-v1.8"
        defects.add(f"{path}.schema_version", what)
    _check_agent(document.agent, path, defects)
    if document.final_metrics is not None:
        _check_shape(document.final_metrics, FinalMetrics, f"{path}.final_metrics", defects)
    _check_order(document.steps, path, defects)
    for at, step in enumerate(document.steps):
        if step.source is not AGENT:
            _check_other_step(step, path, at, defects)
        elif (metrics := step.metrics) is not None:
            for name, count in metrics.items():
                if count.__class__ is not int or name not in _COUNTS:
                    _check_shape(metrics, Metrics, f"{path}.steps[{at}].metrics", defects)
                    break
        if step.llm_call_count is not None:
            _check_call_count(step, f"{path}.steps[{at}]", defects)
        if step.timestamp is not None:
            try:
                datetime.fromisoformat(step.timestamp.replace("Z", "+00:00"))
            except ValueError:
                defects.add(f"{path}.steps[{at}].timestamp", f"{shown(step.timestamp)} is not an ISO 8601 time")
        if step.message.__class__ is not str:
            _check_message(step, f"{path}.steps[{at}].message", defects)
        if (observation := step.observation) is not None and not _answers_in_order(observation, step.tool_calls):
            _check_observation(observation, step.tool_calls, f"{path}.steps[{at}].observation", defects)


def _answers_in_order(observation: Observation, calls: list[ToolCall] | None) -> bool:
    """Whether each call has its one plain answer, as nearly always: then there is nothing to be told."""
    results = observation.results
    if calls is None or len(calls) != len(results):
        return False
    for at, result in enumerate(results):
        if result.source_call_id != calls[at].tool_call_id or result.content.__class__ is not str or result.subagent_trajectory_ref:
            return False
    return True


def _check_agent(agent: Agent | None, path: str, defects: Defects) -> None:
    if agent is None:
        defects.add(f"{path}.agent", "missing")
    elif agent.version is None:
        defects.add(f"{path}.agent.version", "missing")


def _check_order(steps: list[Step], path: str, defects: Defects) -> None:
    if [step.step_id for step in steps] == list(range(1, len(steps) + 1)):
        return
    wrong = [(at, step.step_id) for at, step in enumerate(steps) if step.step_id != at + 1]
    at, step_id = wrong[0]
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    defects.add(f"{path}.steps[{at}].step_id", f"{shown(step_id)} is not sequential; expected {at + 1}{more}")


def _check_call_count(step: Step, path: str, defects: Defects) -> None:
    count = step.llm_call_count
    if count is not None and count < 0:
        defects.add(f"{path}.llm_call_count", f"{count} is below 0")
    for name in ("metrics", "reasoning_content") if count == 0 and step.source is AGENT else ():
        if getattr(step, name) is not None:
            defects.add(f"{path}.{name}", "must be absent where llm_call_count is 0")


def _check_other_step(step: Step, path: str, at: int, defects: Defects) -> None:
    for name in AGENT_ONLY:
        if getattr(step, name) is not None:
            defects.add(f"{path}.steps[{at}].{name}", f"only a step of the agent may have it, this one is from the {step.source.value}")


def _check_message(step: Step, path: str, defects: Defects) -> None:
    if step.message is None:
        defects.add(path, "missing")
    else:
        _check_parts(step.message, path, defects)


def _check_observation(observation: Observation, calls: list[ToolCall] | None, path: str, defects: Defects) -> None:
    known = {call.tool_call_id for call in calls or ()}
    for at, result in enumerate(observation.results):
        if calls is not None and result.source_call_id is not None and result.source_call_id not in known:
            defects.add(f"{path}.results[{at}].source_call_id", f"{shown(result.source_call_id)} is no tool call of this step")
        if result.content.__class__ is list:
            _check_parts(result.content, f"{path}.results[{at}].content", defects)
        for nth, reference in enumerate(result.subagent_trajectory_ref or ()):
            where = f"{path}.results[{at}].subagent_trajectory_ref[{nth}]"
            _check_shape(reference, SubagentRef, where, defects)
            if reference.get("trajectory_id") is None and reference.get("trajectory_path") is None:
                defects.add(where, "names neither trajectory_id nor trajectory_path")


def _check_parts(parts: Any, path: str, defects: Defects) -> None:
    for at, part in enumerate(parts):
        if reason := _wrong_part(part):
            defects.add(f"{path}[{at}]", reason)


def _wrong_part(part: ContentPart) -> str | None:
    if part.type == "text":
        if part.source is not None:
            return "a part of type 'text' must have no source"
        return "a part of type 'text' must have text" if part.text is None else None
    if part.type not in ("image", "audio"):
        return f"type {shown(part.type)} is not text, image or audio"
    if part.text is not None:
        return f"a part of type '{part.type}' must have no text"
    return "a part of this type must have a source" if part.source is None else _wrong_source(part.type, part.source)


def _wrong_source(kind: str, source: dict[str, Any]) -> str | None:
    try:
        media = msgspec.convert(source, MediaSource)
    except msgspec.ValidationError as error:
        return f"source: {error}"
    if kind == "image":
        return None if media.media_type in IMAGES else f"media_type {shown(media.media_type)} is not that of an image"
    name = media.media_type.strip().lower()
    return None if name in SOUNDS or name in SOUND_ALIASES else f"media_type {shown(media.media_type)} is not that of a sound"


def _check_shape(value: dict[str, Any], shape: type[msgspec.Struct], path: str, defects: Defects) -> None:
    try:
        msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        message, _, where = str(error).partition(" - at `$")
        defects.add(path + where.rstrip("`"), message)


def check_subagents(subagents: list[tuple[str, Document]], path: str, defects: Defects) -> None:
    """Embedded trajectories, given with their paths, have ids that are theirs alone."""
    seen: set[str] = set()
    for where, document in subagents:
        name = document.trajectory_id
        if name is None:
            defects.add(f"{where}.trajectory_id", "missing, and required of an embedded trajectory")
        elif name in seen:
            defects.add(f"{where}.trajectory_id", f"{shown(name)} stands twice in {path}")
        else:
            seen.add(name)
