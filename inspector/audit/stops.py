"""Stops the enforcement of a check in a run where it causes too large a share of the decisions.

A check that suddenly excludes a fifth of a run is more likely wrong than right, unless it rests on facts: then the
environment is put on watch instead, and enforcement goes on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sqlmodel import Session

from inspector.audit.deciding import Judged, split
from inspector.policy import Policy
from inspector.store import runs
from inspector.verdict import Action, Cause, Tier


class Stop(NamedTuple):
    """A check's enforcement was stopped for a run."""

    run: int
    check: str  # name@version
    share: float


class Watch(NamedTuple):
    """An environment version that should be watched."""

    environment: str
    version: str
    check: str
    share: float


def review(session: Session, policy: Policy, judged: Iterable[Judged], *, share: float, window: int) -> tuple[list[Stop], list[Watch]]:
    """Look at the runs in which this block excluded or overrode something; what was stopped, and what should be watched."""
    by_run: dict[int, list[Judged]] = {}
    for j in judged:
        run = j.audited.subject.run
        if run is not None and j.judgement.action in (Action.EXCLUDE, Action.OVERRIDE_REWARD):
            by_run.setdefault(run, []).append(j)
    stops: list[Stop] = []
    watches: dict[Watch, None] = {}
    for run, acted in sorted(by_run.items()):
        _, caused = runs.shares(session, run, window)
        for check_version, count in sorted(caused.items()):
            resting = [j for j in acted if check_version in j.deciding]
            if count <= share * window or not resting:
                continue
            name = next(name for j in resting for name in j.judgement.deciding if j.plan.ids.get(split(name)) == check_version)
            if _rests_on_facts(policy.thresholds.proof, resting[0], name):
                watches |= {Watch(j.audited.header.environment.id, j.audited.header.environment.version, name, count / window): None for j in resting}
            elif runs.stop(session, run, check_version, count / window):
                stops.append(Stop(run, name, count / window))
    return stops, list(watches)


def _rests_on_facts(proof: float, judged: Judged, name: str) -> bool:
    check, version = split(name)
    found = [f for f in judged.audited.assessment.findings if (f.check, f.version) == (check, version)]
    tier, cause = (found[0].tier, found[0].cause) if found else (Tier.TEXT, Cause.ANOMALY)
    return tier is Tier.EVIDENCE or judged.belief.precision(check, version, tier, cause).lower >= proof
