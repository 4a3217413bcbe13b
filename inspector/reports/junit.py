"""A report as JUnit XML: a suite for each environment, a case for each task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from inspector.probe.words import EnvironmentReport, Evidence, TaskReport
from inspector.reports.markup import Markup, tag, text
from inspector.reports.meanings import DEFECTS
from inspector.reports.probed import Ground, Probed

TEXT = 20_000  # characters that are shown of one proof
NAME = 500  # of a name
FAILURE, SKIPPED = "failure", "skipped"


def junit(probed: Probed) -> str:
    """A case fails by what is new and failing; what was not judged is skipped; what is known is told beside."""
    suites = [_suite(probed, environment) for environment in probed.environments] + _interrupted(probed)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tag("testsuites", *suites, name="inspector probe")}\n'


def _interrupted(probed: Probed) -> list[Markup]:
    """A suite of one error, since a reader counts cases, and the missing ones would not be missed."""
    if probed.interruption is None:
        return []
    case = tag("testcase", tag("error", type="interrupted", message=probed.interruption.told()), classname="inspector probe", name="interrupted", time="0.000")
    stamp = probed.at.isoformat(timespec="seconds")
    return [tag("testsuite", case, name="interrupted", tests=1, failures=0, errors=1, skipped=0, time="0.000", timestamp=stamp)]


class _Case(NamedTuple):
    """One task's element, and what it counts as."""

    element: Markup
    verdict: str | None


def _suite(probed: Probed, environment: EnvironmentReport) -> Markup:
    cases = [_case(probed, environment, task) for task in environment.tasks]
    return tag(
        "testsuite",
        tag("properties", _property("version", environment.version), _property("verifier_digest", environment.verifier_digest)),
        *(case.element for case in cases),
        tag("system-out", text("\n".join(environment.notes), limit=TEXT, lines=True)) if environment.notes else None,
        name=text(environment.environment, limit=NAME),
        tests=len(cases),
        failures=sum(case.verdict == FAILURE for case in cases),
        errors=0,
        skipped=sum(case.verdict == SKIPPED for case in cases),
        time=f"{environment.wall_s:.3f}",
        timestamp=probed.at.isoformat(timespec="seconds"),
    )


def _property(name: str, value: str) -> Markup:
    return tag("property", name=name, value=text(value, limit=NAME))


def _case(probed: Probed, environment: EnvironmentReport, task: TaskReport) -> _Case:
    grounds = probed.grounds(environment, task)
    failing = [ground.evidence for ground in grounds if ground.evidence.outcome in probed.failing and not ground.known]
    beside = [ground for ground in grounds if ground.evidence not in failing]
    untold = bool(beside) and all(ground.evidence.outcome not in DEFECTS | probed.failing for ground in beside)
    verdict = FAILURE if failing else SKIPPED if untold else None
    element = tag(
        "testcase",
        _failure(failing) if failing else _skipped(beside[0].evidence) if untold else None,  # one at most: readers of the format take no more
        tag("system-out", text("\n\n".join(map(_beside, beside)), limit=TEXT, lines=True)) if beside else None,
        classname=text(environment.environment, limit=NAME),
        name=text(task.task, limit=NAME),
        time=f"{task.wall_s:.3f}",
    )
    return _Case(element, verdict)


def _failure(failing: Sequence[Evidence]) -> Markup:
    what = ", ".join(dict.fromkeys(one.outcome.value for one in failing))
    proofs = text("\n\n".join(map(proof, failing)), limit=TEXT, lines=True)
    return tag(FAILURE, proofs, type=what, message=text(failing[0].claim, limit=NAME))


def _skipped(evidence: Evidence) -> Markup:
    return tag(SKIPPED, message=text(f"{evidence.outcome}: {evidence.claim}", limit=NAME))


def _beside(ground: Ground) -> str:
    return f"known: {proof(ground.evidence)}" if ground.known else proof(ground.evidence)


def proof(evidence: Evidence) -> str:
    """All that is said of it, as lines."""
    parts = [
        f"{evidence.outcome}{f', by {evidence.probe}' if evidence.probe else ''}: {evidence.claim}",
        f"submitted:\n{evidence.proof}" if evidence.proof else "",
        f"came back:\n{evidence.detail}" if evidence.detail else "",
        f"the same cause: {', '.join(evidence.also)}" if evidence.also else "",
        f"reproduce: {evidence.reproduce}" if evidence.reproduce else "",
    ]
    return "\n".join(part for part in parts if part)
