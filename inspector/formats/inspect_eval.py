"""Inspect logs, `.eval` archives and `.json` documents: every scored sample of an evaluation, each epoch for itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspector.errors import UnreadableInput
from inspector.formats import _chat
from inspector.formats._draft import Asked, Draft
from inspector.formats._files import Kind, Peek, Refused, rows
from inspector.formats._json import NotJson, decode
from inspector.formats._json import text as json_text
from inspector.formats._transcript import Transcript, final_metrics, is_number
from inspector.formats._zip import Archive, BadMember

NAME = "inspect_eval"
VERSION = 1
LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}  # correct, incorrect, partial, no answer
_HEADERS = ("header.json", "_journal/start.json")
_SAMPLES = "samples/"
_ATTACHMENT = "attachment://"
_LIMITS = {
    "message": "max_steps",
    "turn": "max_steps",
    "token": "max_tokens",
    "context": "max_tokens",
    "time": "timeout",
    "working": "timeout",
    "operator": "cancelled",
}
_STOPPED = {"stop": ("completed", None), "tool_calls": ("completed", None), "max_tokens": ("max_tokens", True), "model_length": ("max_tokens", True)}
_KEPT = (
    "input",
    "target",
    "choices",
    "scores",
    "metadata",
    "store",
    "sandbox",
    "files",
    "setup",
    "limit",
    "error_retries",
    "invalidation",
    "total_time",
    "working_time",
)


@dataclass(frozen=True)
class _Eval:
    """What the header says of all samples."""

    spec: dict[str, Any]
    plan: Any = None

    @property
    def epochs(self) -> int:
        config = self.spec.get("config")
        count = config.get("epochs") if isinstance(config, dict) else None
        return count if isinstance(count, int) and count > 0 else 1

    @property
    def run(self) -> str:
        return str(self.spec.get("eval_id") or self.spec.get("run_id") or self.spec.get("task_id") or "")


def looks_like(peek: Peek) -> float:
    """A zip with a header and samples, or a document with `eval` and `version`."""
    if peek.kind is Kind.ARCHIVE:
        with Archive(peek.path) as archive:
            return 1.0 if any(name in archive.names for name in _HEADERS) else 0.0
    spec = peek.first.get("eval")
    return 1.0 if isinstance(spec, dict) and "task" in spec and {"samples", "plan", "status", "version"} & set(peek.first) else 0.0


def convert(path: Path, asked: Asked) -> Iterator[Draft | Refused]:
    """One trajectory a sample and epoch."""
    with path.open("rb") as file:
        archived = file.read(4) == b"PK\x03\x04"
    yield from _archive(path) if archived else _documents(path)


def _archive(path: Path) -> Iterator[Draft | Refused]:
    with Archive(path) as archive:
        header = _header(archive)
        for at, name in enumerate(name for name in archive.names if name.startswith(_SAMPLES) and name.endswith(".json")):
            source = f"{path}!{name}:1"
            try:
                raw = archive.read(name)
                yield _sample(Draft(source, raw, at), *decode(raw), header)
            except (BadMember, NotJson) as error:
                yield Refused(source, str(error))


def _header(archive: Archive) -> _Eval:
    for name in _HEADERS:  # a log that was cut short has only the journal
        if name not in archive.names:
            continue
        try:
            found, _ = decode(archive.read(name))
        except (BadMember, NotJson) as error:
            raise UnreadableInput(f"{archive.path}!{name}:1: {error}") from error
        if isinstance(found, dict) and isinstance(found.get("eval"), dict):
            return _Eval(found["eval"], found.get("plan"))
    raise UnreadableInput(f"{archive.path}: has no header.json that says what was evaluated")


def _documents(path: Path) -> Iterator[Draft | Refused]:
    for row in rows(path):
        if isinstance(row, Refused):
            yield row
        elif not isinstance(row.value, dict) or not isinstance(row.value.get("eval"), dict):
            yield Refused(row.source, "has no object `eval`")
        else:
            header = _Eval(row.value["eval"], row.value.get("plan"))
            for at, sample in enumerate(row.value.get("samples") or []):
                gone = [entry.replace(f"$.samples[{at}]", "$", 1) for entry in row.lost if entry.startswith(f"$.samples[{at}]")]
                yield _sample(Draft(f"{row.source}[{at}]", json_text(sample).encode(), at), sample, gone, header)


def _sample(draft: Draft, sample: Any, gone: list[str], header: _Eval) -> Draft | Refused:
    if not isinstance(sample, dict):
        return Refused(draft.source, "is not an object")
    draft.lost += gone
    spec, attachments = header.spec, sample.get("attachments")
    transcript = Transcript()
    messages = sample.get("messages") if isinstance(sample.get("messages"), list) else []
    _chat.add(transcript, _resolved(messages, attachments if isinstance(attachments, dict) else {}), "$.messages")
    if not messages and sample.get("input"):
        prompt = sample["input"]
        _chat.add(transcript, prompt if isinstance(prompt, list) else [{"role": "user", "content": prompt}], "$.input")
    draft.told(transcript, agent=_solver(header), model=spec.get("model"), version=_package(spec), tools=_tools(sample), final_metrics=_totals(sample))
    task = spec.get("task_registry_name") or spec.get("task")
    draft.environment = task if isinstance(task, str) and "/" in task else f"inspect/{task}" if task else None
    draft.version = spec.get("task_version")
    draft.id, draft.task = sample.get("uuid"), sample.get("id")
    _belonging(draft, sample, header)
    _scores(draft, sample.get("scores"))
    _ended(draft, sample)
    draft.extra |= {name: sample[name] for name in _KEPT if sample.get(name) not in (None, {}, [])}
    if sample.get("events"):
        draft.lose("$.events", f"{len(sample['events'])} events of the harness are not carried; the messages are")
    return draft


def _resolved(value: Any, attachments: dict[str, Any]) -> Any:
    """`value` with what Inspect took out of line put back."""
    if isinstance(value, str):
        return attachments.get(value[len(_ATTACHMENT) :], value) if value.startswith(_ATTACHMENT) else value
    if isinstance(value, list):
        return [_resolved(one, attachments) for one in value]
    if isinstance(value, dict):
        return {name: _resolved(one, attachments) for name, one in value.items()}
    return value


def _solver(header: _Eval) -> str:
    solver = header.spec.get("solver")
    steps = header.plan.get("steps") if isinstance(header.plan, dict) else None
    last = steps[-1].get("solver") if isinstance(steps, list) and steps and isinstance(steps[-1], dict) else None
    return str(solver or last or "inspect")


def _package(spec: dict[str, Any]) -> Any:
    packages = spec.get("packages")
    return packages.get("inspect_ai") if isinstance(packages, dict) else None


def _tools(sample: dict[str, Any]) -> Any:
    """The tools of the last model call that had any; the sample itself does not list them."""
    events = sample.get("events")
    latest = reversed(events) if isinstance(events, list) else ()
    return next((event["tools"] for event in latest if isinstance(event, dict) and event.get("event") == "model" and event.get("tools")), None)


def _totals(sample: dict[str, Any]) -> dict[str, Any] | None:
    usage = sample.get("model_usage")
    models = [one for one in usage.values() if isinstance(one, dict)] if isinstance(usage, dict) else []
    names = ("input_tokens", "output_tokens", "input_tokens_cache_read")
    counts = [[one[name] for one in models if is_number(one.get(name))] for name in names]
    return final_metrics(*(sum(count) if count else None for count in counts))


def _belonging(draft: Draft, sample: dict[str, Any], header: _Eval) -> None:
    """The evaluation as the run, its epochs of one sample as a group."""
    if header.run:
        draft.put("run", {"id": header.run[:200], "trainer": "inspect_ai", "work": "eval"})
    epoch = sample.get("epoch")
    if header.epochs > 1 and isinstance(epoch, int):
        draft.put("group", {"id": f"{header.run[:80]}-{str(sample.get('id'))[:100]}", "index": max(epoch - 1, 0), "size": header.epochs})
    draft.moment("started_at", sample.get("started_at"))
    draft.moment("ended_at", sample.get("completed_at"))


def _scores(draft: Draft, scores: Any) -> None:
    """One scorer's value is the reward; several are its components and nobody says which is the total."""
    if not isinstance(scores, dict) or not scores:
        return
    found: dict[str, Any] = {}
    for name, score in scores.items():
        value = score.get("value") if isinstance(score, dict) else score
        found |= {f"{name}.{key}": one for key, one in value.items()} if isinstance(value, dict) else {name: value}
    numbers = {name: _number(draft, one, f"$.scores.{name}") for name, one in found.items()}
    draft.components(numbers, "$.scores")
    if len(numbers) == 1:
        draft.reward = next(iter(numbers.values()))
    else:
        draft.lose("$.scores", f"{len(numbers)} scores and none is called the total: the reward is null, all are kept as components")


def _number(draft: Draft, value: Any, path: str) -> float | None:
    if isinstance(value, str) and value in LETTERS:
        draft.lose(path, f"{value!r} is read as {LETTERS[value]:g}; the original is kept under extra")
        return LETTERS[value]
    return draft.number(value, path)


def _ended(draft: Draft, sample: dict[str, Any]) -> None:
    limit, error = sample.get("limit"), sample.get("error")
    if isinstance(error, dict):
        draft.put("errors", [{"type": "SampleError", "message": str(error.get("message") or "")}])
    if isinstance(limit, dict):
        kind = str(limit.get("type"))
        reason = _LIMITS.get(kind, f"{kind}_limit"[:200])
        draft.put("termination", {"reason": reason, "truncated": kind != "operator", "timed_out": True if reason == "timeout" else None})
        return
    if error:
        draft.put("termination", {"reason": "error"})
        return
    output = sample.get("output")
    choices = output.get("choices") if isinstance(output, dict) else None
    stop = choices[0].get("stop_reason") if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None
    if isinstance(stop, str):
        reason, truncated = _STOPPED.get(stop, (stop[:200], None))
        draft.put("termination", {"reason": reason, "truncated": truncated})
