"""Reads the folder of a Harbor trial: what the agent did, what the verifier said and what broke."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from inspector.errors import UnreadableInput
from inspector.formats._draft import Draft
from inspector.formats._files import Refused, whole
from inspector.formats._json import NotJson, decode
from inspector.formats._transcript import Transcript, final_metrics, is_number

_OUTCOME = "result.json"
_TRAJECTORIES = ("agent/trajectory.json", "trajectory.json")
_LOGS = ("verifier/test-stdout.txt", "verifier/stdout.txt", "verifier/stdout", "verifier/test_stdout.txt", "test-stdout.txt")
_COUNTS = ("verifier/ctrf.json", "ctrf.json")
_LOG_BYTES = 512 << 10
_READ = frozenset({"id", "task_name", "trial_name", "task_id", "task_checksum", "source", "verifier_result", "exception_info", "started_at", "finished_at"})
_DEPTH = 3  # folders below a job in which a trial is looked for
_BOUNDARIES = (
    ("verifier", "verifier"),
    ("rewardfile", "verifier"),
    ("environment", "sandbox"),
    ("sandbox", "sandbox"),
    ("docker", "sandbox"),
    ("agent", "harness"),
)


def is_trial_outcome(value: Any) -> bool:
    """Whether this is the `result.json` of a trial, and not that of a whole job."""
    return isinstance(value, dict) and "task_name" in value and bool({"trial_name", "verifier_result", "task_checksum", "exception_info"} & set(value))


def trials(path: Path, depth: int = _DEPTH) -> Iterator[Path]:
    """The trial folders at or below `path`, in order of name."""
    if _is_trial(path):
        yield path
        return
    if depth:
        for child in sorted(path.iterdir()):
            if child.is_dir() and not child.is_symlink():
                yield from trials(child, depth - 1)


def _is_trial(path: Path) -> bool:
    if any((path / name).is_file() for name in _TRAJECTORIES):
        return True
    try:
        return is_trial_outcome(_json(path / _OUTCOME))
    except (UnreadableInput, NotJson):
        return False


def trial(path: Path) -> Draft | Refused:
    """The draft of one trial; what is missing is left open, what is broken is listed."""
    raw, source, lost = b"", "", []
    parts: dict[str, Any] = {}
    for name in (_OUTCOME, *_TRAJECTORIES):
        file = path / name
        if not file.is_file() or ("trajectory" in parts and name != _OUTCOME):
            continue
        try:
            text = whole(file)
            value, gone = decode(text)
        except (UnreadableInput, NotJson) as error:
            lost.append(f"{name}: {error}")
            continue
        raw, source = raw + text, source or f"{file}:1"
        lost += [f"{name} {entry}" for entry in gone]
        parts["outcome" if name == _OUTCOME else "trajectory"] = value
    if not parts:
        return Refused(f"{path}:1", "; ".join(lost) or "has neither result.json nor a trajectory")
    return _draft(path, Draft(source, raw, lost=lost), parts)


def _draft(path: Path, draft: Draft, parts: dict[str, Any]) -> Draft:
    outcome = parts["outcome"] if isinstance(parts.get("outcome"), dict) else {}
    document = parts.get("trajectory")
    if not isinstance(document, dict):
        draft.lose("agent/trajectory.json", "is not there or not readable: the steps of the agent are unknown")
        document = _empty(outcome)
    draft.document = document
    draft.id = outcome.get("trial_name") or outcome.get("id") or document.get("trajectory_id")
    draft.task = outcome.get("task_name")
    draft.environment, draft.version = _environment(outcome)
    if isinstance(outcome.get("task_checksum"), str):
        draft.fields["task_hash"] = {"hash": outcome["task_checksum"][:200]}
    _score(path, draft, outcome)
    _report(path, draft, outcome)
    _ended(draft, outcome)
    draft.extra |= {name: value for name, value in outcome.items() if name not in _READ and value is not None}
    return draft


def _empty(outcome: dict[str, Any]) -> dict[str, Any]:
    agent, used = _object(outcome, "agent_info"), _object(outcome, "agent_result")
    totals = final_metrics(used.get("n_input_tokens"), used.get("n_output_tokens"), used.get("n_cache_tokens"), used.get("cost_usd"))
    model = _object(agent, "model_info").get("name")
    return Transcript().document(str(agent.get("name") or ""), model, version=agent.get("version"), final_metrics=totals)


def _environment(outcome: dict[str, Any]) -> tuple[Any, Any]:
    """(team/name, version) out of the dataset, or of where the task lies."""
    where = _object(outcome, "task_id") or _object(_object(outcome, "config"), "task")
    commit = where.get("git_commit_id") or where.get("ref")
    if isinstance(outcome.get("source"), str) and outcome["source"]:
        name, _, version = outcome["source"].partition("@")
        return (name if "/" in name else f"harbor/{name}"), version or commit
    if where.get("org"):
        return f"{where['org']}/{where.get('name')}", commit
    folder = Path(str(where["path"])).parent.name if where.get("path") else ""
    return (f"harbor/{folder}" if folder else None), commit


def _score(path: Path, draft: Draft, outcome: dict[str, Any]) -> None:
    verified = _object(outcome, "verifier_result")
    rewards = verified.get("rewards", verified.get("reward"))
    if rewards is None and "reward" not in verified:
        rewards = _reward_file(path, draft)
    if is_number(rewards):
        rewards = {"reward": rewards}
    if not isinstance(rewards, dict):
        draft.score(rewards, "$.verifier_result.rewards")
        return
    total = rewards.get("reward", next(iter(rewards.values())) if len(rewards) == 1 else None)
    if total is None and len(rewards) > 1 and "reward" not in rewards:
        draft.lose("$.verifier_result.rewards", f"none of {', '.join(sorted(rewards))} is named `reward`; the total is unknown, all are kept as components")
    draft.score(total, "$.verifier_result.rewards")
    draft.components({name: value for name, value in rewards.items() if name != "reward"}, "$.verifier_result.rewards")


def _reward_file(path: Path, draft: Draft) -> Any:
    for name in ("verifier/reward.json", "verifier/reward.txt", "reward.txt"):
        if not (path / name).is_file():
            continue
        try:
            value, gone = decode(whole(path / name, _LOG_BYTES).strip())
        except (UnreadableInput, NotJson) as error:
            draft.lose(name, str(error))
            continue
        draft.lost += [f"{name} {entry}" for entry in gone]
        return value
    return None


def _report(path: Path, draft: Draft, outcome: dict[str, Any]) -> None:
    """What the verifier printed and counted, how long it took and whether it was stopped."""
    spent = _object(outcome, "verifier")
    report = {
        "stdout": _log(path, draft),
        "tests": _counts(path, draft),
        "duration_s": _seconds(spent.get("started_at"), spent.get("finished_at")),
        "timed_out": True if "VerifierTimeout" in str(_object(outcome, "exception_info").get("exception_type")) else None,
    }
    draft.put("verifier", {name: value for name, value in report.items() if value is not None} or None)


def _log(path: Path, draft: Draft) -> str | None:
    file = next((path / name for name in _LOGS if (path / name).is_file()), None)
    if file is None:
        return None
    size = file.stat().st_size
    with file.open("rb") as log:
        log.seek(max(size - _LOG_BYTES, 0))
        text = log.read(_LOG_BYTES).decode(errors="replace")
    if size > _LOG_BYTES:
        draft.lose(file.name, f"the first {size - _LOG_BYTES} of its {size} bytes are left out")
    return text


def _counts(path: Path, draft: Draft) -> dict[str, int] | None:
    """Test counts out of a CTRF report."""
    file = next((path / name for name in _COUNTS if (path / name).is_file()), None)
    if file is None:
        return None
    try:
        summary = _object(_object(_json(file), "results"), "summary")
    except (UnreadableInput, NotJson) as error:
        draft.lose(file.name, str(error))
        return None
    names = {"collected": "tests", "passed": "passed", "failed": "failed", "skipped": "skipped"}
    return {ours: summary[theirs] for ours, theirs in names.items() if isinstance(summary.get(theirs), int)} or None


def _ended(draft: Draft, outcome: dict[str, Any]) -> None:
    draft.moment("started_at", outcome.get("started_at"))
    draft.moment("ended_at", outcome.get("finished_at"))
    broke = outcome.get("exception_info")
    if not isinstance(broke, dict):
        return
    kind = str(broke.get("exception_type") or "")
    late = "Timeout" in kind and "Verifier" not in kind
    boundary = next((side for word, side in _BOUNDARIES if word in kind.lower()), None)
    draft.put("errors", [{"type": kind[:200] or None, "boundary": boundary, "message": _text(broke.get("exception_message"))}])
    draft.put("termination", {"reason": "timeout" if late else "error", "timed_out": late, "truncated": True if late else None})
    draft.extra["exception_info"] = broke


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _seconds(start: Any, end: Any) -> float | None:
    try:
        spent = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (TypeError, ValueError):
        return None
    return spent if spent >= 0 else None


def _json(file: Path) -> Any:
    return decode(whole(file))[0]


def _object(holder: Any, name: str) -> dict[str, Any]:
    inner = holder.get(name) if isinstance(holder, dict) else None
    return inner if isinstance(inner, dict) else {}
