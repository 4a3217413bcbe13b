"""What is said of one trajectory: the line of `audit --json`, and what the table shows beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from inspector.check import Check
from inspector.local.spool import Inspected
from inspector.verdict import Finding, Judgement, Outcome


class Report(NamedTuple):
    """One trajectory's outcomes, findings and judgement."""

    inspected: Inspected
    judgement: Judgement
    coverage: dict[str, Outcome]  # by check
    findings: tuple[Finding, ...]  # what the action rests on first

    @property
    def id(self) -> str:
        return self.inspected.id

    def line(self) -> dict[str, Any]:
        """As `--json` writes it."""
        judgement = self.judgement
        return {
            "id": self.id,
            "verdict": judgement.verdict.word,
            "probability": judgement.probability,
            "action": judgement.action.value,
            "reward_override": judgement.reward_override,
            "cause": judgement.cause.value if judgement.cause else None,
            "findings": [_told(finding) for finding in self.findings],
            "coverage": {check: outcome.word for check, outcome in self.coverage.items()},
        }

    def why(self) -> Iterator[str]:
        """What was found, and what the policy made of it where that was more."""
        yield from (f"{finding.check}: {finding.message}" for finding in self.findings)
        yield from (reason for reason in self.judgement.reasons if "@" not in reason.partition(":")[0])
        yield from (f"{check}: {outcome.word}" for check, outcome in self.coverage.items() if outcome in (Outcome.ERROR, Outcome.INCONCLUSIVE))


def report(inspected: Inspected, judgement: Judgement, checks: Sequence[Check]) -> Report:
    """A late check is not assessed here: whoever has a server may run it."""
    said = (Outcome.NOT_ASSESSED if check.late else Outcome(outcome) for check, outcome in zip(checks, inspected.outcomes, strict=True))
    ordered = sorted(inspected.findings, key=lambda f: (f"{f.check}@{f.version}" not in judgement.deciding, -f.score))
    return Report(inspected, judgement, {check.name: outcome for check, outcome in zip(checks, said, strict=True)}, tuple(ordered))


def _told(finding: Finding) -> dict[str, Any]:
    return {
        "check": finding.check,
        "version": finding.version,
        "tier": finding.tier.value,
        "cause": finding.cause.value,
        "score": finding.score,
        "message": finding.message,
        "spans": [msgspec.structs.asdict(span) for span in finding.spans],
    }
