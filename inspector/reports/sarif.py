"""A report as SARIF 2.1.0, for code scanning: a rule for each outcome, a result for each piece of evidence and each hint that no probe could test."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from inspector.probe.words import EnvironmentReport, Evidence, Hint, Outcome, TaskReport
from inspector.reports.meanings import DEFECTS, GRAVE, MEANINGS
from inspector.reports.probed import Ground, Probed, fingerprint
from inspector.showable import showable

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
MESSAGE = 2_000  # characters
TEXTS = 20_000, 2_000, 200  # characters of a proof; the first at which all fit
RESULTS, BYTES = 25_000, 9_500_000  # of one run; the file may hold 10 MB, the rest is for what is no result
ROOT = "%SRCROOT%"
HINT = "hint"
RULES: list[Outcome] = [outcome for outcome in MEANINGS if outcome is not Outcome.SOUND]


def sarif(probed: Probed, tell: Callable[[str], object] = lambda note: None) -> str:
    """One run over all environments. `tell` is told what was left out of it, which its invocation says too."""
    for limit in TEXTS:
        found = list(map(_sized, _found(probed, limit)))
        if sum(one.size for one in found) <= BYTES:
            break
    kept = _gravest(found)
    notes = [*_cuts(found, kept, limit), *([probed.interruption.told()] if probed.interruption else [])]
    for note in notes[: len(notes) - bool(probed.interruption)]:
        tell(f"SARIF: {note}")
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(probed, [one.result for one in kept], notes)]}
    return msgspec.json.encode(log).decode()


def _run(probed: Probed, results: list[dict[str, Any]], notes: list[str]) -> dict[str, Any]:
    told = [*({"level": "warning", "message": _message(note)} for note in notes), *_notes(probed)]
    return {
        "tool": {"driver": {"name": "inspector probe", "version": version("inspector"), "rules": [*map(_rule, RULES), _hint_rule()]}},
        "automationDetails": {"id": "inspector-probe/"},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": probed.interruption is None, "toolExecutionNotifications": told}],
        "results": results,
        "properties": {"environments": [_environment(environment) for environment in probed.environments]},
    }


# --- what hosts take ---------------------------------------------------------------------------------------------------


class _Sized(NamedTuple):
    """A result, how grave it is, and how much of the file it takes."""

    result: dict[str, Any]
    rank: int
    size: int


def _sized(result: dict[str, Any]) -> _Sized:
    return _Sized(result, result["ruleIndex"], len(msgspec.json.encode(result)) + 1)


def _gravest(found: Sequence[_Sized]) -> list[_Sized]:
    """As many as hosts take, in their order; of what is equally grave the first."""
    size, kept = 0, set()
    for at in sorted(range(len(found)), key=lambda at: found[at].rank)[:RESULTS]:
        size += found[at].size
        if size > BYTES:
            break
        kept.add(at)
    return [one for at, one in enumerate(found) if at in kept]


def _cuts(found: Sequence[_Sized], kept: Sequence[_Sized], limit: int) -> Iterator[str]:
    if limit < TEXTS[0]:
        yield f"proofs are cut to {limit:,} characters each, since hosts take no more than {BYTES:,} bytes; --html and --json have them whole"
    if left_out := len(found) - len(kept):
        by_rule = Counter(one.result["ruleId"] for one in found)
        by_rule.subtract(one.result["ruleId"] for one in kept)
        rules = ", ".join(f"{count:,} {rule}" for rule, count in by_rule.items() if count)
        yield f"{left_out:,} of {len(found):,} results are left out, the least grave ({rules}), since hosts take {RESULTS:,} and {BYTES:,} bytes"


# --- what was found ----------------------------------------------------------------------------------------------------


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


def _found(probed: Probed, limit: int) -> Iterator[dict[str, Any]]:
    for environment, task, ground in probed.all_grounds():
        yield _result(probed, environment, task, ground, limit)
    yield from _hints(probed)


def _result(probed: Probed, environment: EnvironmentReport, task: TaskReport, ground: Ground, limit: int) -> dict[str, Any]:
    evidence = ground.evidence
    state = {"baselineState": "unchanged" if ground.known else "new"} if probed.baseline else {}
    return {
        "ruleId": evidence.outcome.value,
        "ruleIndex": RULES.index(evidence.outcome),
        "level": _level(evidence.outcome),
        "message": _message(f"{task.task}: {evidence.claim}"),
        "locations": [_location(probed, environment, task.task)],
        "partialFingerprints": {"evidence/v1": fingerprint(environment.environment, task.task, evidence.outcome, evidence.probe)},
        "properties": _proof(evidence, limit),
        **state,
    }


def _proof(evidence: Evidence, limit: int) -> dict[str, Any]:
    """Foreign text where nobody reads markup."""
    told = {"probe": evidence.probe, "submitted": evidence.proof, "cameBack": evidence.detail}
    shown: dict[str, Any] = {name: showable(value, limit=limit, lines=True) for name, value in told.items() if value}
    if evidence.reproduce:
        shown["reproduce"] = showable(evidence.reproduce, limit=TEXTS[0])  # a command is whole or of no use
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
