"""A report as SARIF 2.1.0, for code scanning: a rule for each outcome, a result for each piece of evidence and each hint that no probe could test."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

import msgspec

from inspector.probe.words import EnvironmentReport, Evidence, Hint, Outcome, TaskReport
from inspector.reports.meanings import DEFECTS, GRAVE, MEANINGS
from inspector.reports.probed import Ground, Probed, fingerprint
from inspector.showable import showable

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
MESSAGE = 2_000  # characters
TEXT = 20_000
ROOT = "%SRCROOT%"
HINT = "hint"
RULES: list[Outcome] = [outcome for outcome in MEANINGS if outcome is not Outcome.SOUND]


def sarif(probed: Probed) -> str:
    """One run over all environments."""
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(probed)]}
    return msgspec.json.format(msgspec.json.encode(log), indent=1).decode()


def _run(probed: Probed) -> dict[str, Any]:
    return {
        "tool": {"driver": {"name": "inspector probe", "version": version("inspector"), "rules": [*map(_rule, RULES), _hint_rule()]}},
        "automationDetails": {"id": "inspector-probe/"},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": list(_notes(probed))}],
        "results": [*_results(probed), *_hints(probed)],
        "properties": {"environments": [_environment(environment) for environment in probed.environments]},
    }


def _rule(outcome: Outcome) -> dict[str, Any]:
    meaning = {"text": MEANINGS[outcome]}
    return {
        "id": outcome.value,
        "name": outcome.value.title().replace("_", ""),
        "shortDescription": meaning,
        "fullDescription": meaning,
        "defaultConfiguration": {"level": _level(outcome)},
    }


def _hint_rule() -> dict[str, Any]:
    meaning = {"text": "The lint saw something that no probe could test here: look at it; it is no accusation."}
    return {"id": HINT, "name": "Hint", "shortDescription": meaning, "fullDescription": meaning, "defaultConfiguration": {"level": "note"}}


def _level(outcome: Outcome) -> str:
    return "error" if outcome in GRAVE else "warning" if outcome in DEFECTS else "note"


def _results(probed: Probed) -> Iterator[dict[str, Any]]:
    for environment, task, ground in probed.all_grounds():
        yield _result(probed, environment, task, ground)


def _result(probed: Probed, environment: EnvironmentReport, task: TaskReport, ground: Ground) -> dict[str, Any]:
    evidence = ground.evidence
    state = {"baselineState": "unchanged" if ground.known else "new"} if probed.baseline else {}
    return {
        "ruleId": evidence.outcome.value,
        "ruleIndex": RULES.index(evidence.outcome),
        "level": _level(evidence.outcome),
        "message": _message(f"{task.task}: {evidence.claim}"),
        "locations": [_location(probed, environment, task.task)],
        "partialFingerprints": {"evidence/v1": fingerprint(environment.environment, task.task, evidence.outcome, evidence.probe)},
        "properties": _proof(evidence),
        **state,
    }


def _proof(evidence: Evidence) -> dict[str, Any]:
    """Foreign text where nobody reads markup."""
    told = {"probe": evidence.probe, "submitted": evidence.proof, "cameBack": evidence.detail, "reproduce": evidence.reproduce}
    shown: dict[str, Any] = {name: showable(value, limit=TEXT, lines=True) for name, value in told.items() if value}
    return shown | ({"sameCause": [showable(one, limit=MESSAGE) for one in evidence.also]} if evidence.also else {})


def _hints(probed: Probed) -> Iterator[dict[str, Any]]:
    for environment in probed.environments:
        for task, hint in _untested(environment):
            yield {
                "ruleId": HINT,
                "ruleIndex": len(RULES),
                "level": "note",
                "message": _message(f"{task}: {hint.message} [{hint.rule}]" if task else f"{hint.message} [{hint.rule}]"),
                "locations": [_location(probed, environment, task, hint)],
                "partialFingerprints": {"hint/v1": fingerprint(environment.environment, task, hint.rule, hint.path, hint.message)},
            }


def _untested(environment: EnvironmentReport) -> Iterator[tuple[str, Hint]]:
    """A hint that a probe tested is told by its evidence, or was refuted."""
    yield from (("", hint) for hint in environment.hints if hint.confirmed is None)
    yield from ((task.task, hint) for task in environment.tasks for hint in task.hints if hint.confirmed is None)


def _location(probed: Probed, environment: EnvironmentReport, task: str, hint: Hint | None = None) -> dict[str, Any]:
    name = f"{environment.environment}/{task}" if task else environment.environment
    logical = {"logicalLocations": [{"fullyQualifiedName": showable(name, limit=MESSAGE), "kind": "module"}]}
    file = probed.files.get((environment.environment, task))
    if file is None:
        return logical
    path = posixpath.normpath(posixpath.join(posixpath.dirname(file), hint.path)) if hint and hint.path else file
    return {"physicalLocation": {"artifactLocation": _artifact(path), "region": {"startLine": max(hint.line, 1) if hint else 1}}, **logical}


def _artifact(path: str) -> dict[str, str]:
    """Below where the command was run, else anywhere on this machine."""
    written = quote(path, errors="replace")
    return {"uri": f"file://{written}"} if path.startswith("/") else {"uri": written, "uriBaseId": ROOT}


def _notes(probed: Probed) -> Iterator[dict[str, Any]]:
    for environment in probed.environments:
        for note in environment.notes:
            yield {"level": "note", "message": _message(f"{environment.environment}: {note}")}


def _message(foreign: str) -> dict[str, str]:
    """Plain text, in which braces would be placeholders, and brackets with parentheses behind them a link."""
    shown = showable(foreign, limit=MESSAGE)
    return {"text": shown.replace("](", "] (").replace("{", "{{").replace("}", "}}")}


def _environment(environment: EnvironmentReport) -> dict[str, Any]:
    return {
        "id": showable(environment.environment, limit=MESSAGE),
        "version": environment.version,
        "verifierDigest": environment.verifier_digest,
        "tasks": len(environment.tasks),
        "outcomes": environment.counts(),
    }
