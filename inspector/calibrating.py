"""Calibrates projects: reads what people judged, weighs each label by how probable it was that a person looked, fits, chooses, keeps.

What the checks flagged is looked at because they flagged it, so labels of it say nothing of what they missed. Therefore
chance picks a share of all trajectories for a person to look at too. Within each verdict of the checks a label stands for
all trajectories of that verdict, divided by how many of them were looked at; of accepted ones only those count so that
chance picked, since whatever else led a person to one is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import structlog
from sqlalchemy import Engine
from sqlmodel import Session

from inspector.audit.beliefs import read_model
from inspector.calibration import model
from inspector.calibration.choosing import Choice, choose
from inspector.calibration.labels import Label, Seen, natural
from inspector.calibration.model import Model
from inspector.combine import bounded
from inspector.policy import Policy
from inspector.store import baselines, calibrations, labels
from inspector.store.labels import Judged
from inspector.store.session import transaction
from inspector.verdict import Finding, Verdict

log = structlog.get_logger()
LABELS = 5_000  # the last ones of a project
FIRST, SHARE = 10, 0.1  # so many new ones, and such a share of those before, and it is calibrated anew
LOCK = 0x63616C6962  # an advisory lock, of whoever calibrates


class Calibrated(NamedTuple):
    """A project that was looked at."""

    project: int
    labels: int
    new: bool  # another model holds now
    why: str


def calibrate_due(engine: Engine, policy: Policy) -> list[Calibrated]:
    """Calibrate the projects in which enough was judged; none where another process is at it."""
    with baselines.learning_alone(engine, LOCK) as alone:
        if not alone:
            return []
        with transaction(engine) as session:
            due = calibrations.due(session, policy.digest, FIRST, SHARE)
        return [done for project in due if (done := calibrate(engine, project, policy)) is not None]


def calibrate(engine: Engine, project: int, policy: Policy) -> Calibrated | None:
    """Fit on what is known and choose; None where nothing is."""
    with transaction(engine) as session:
        known = labelled(session, project, policy)
        latest = calibrations.latest(session, project)
        champion = _champion(session, project, latest, policy)
    if not natural(known):
        return None
    choice = choose(known, policy.prior, policy.digest, champion)
    _keep(engine, project, policy, choice, known[-1].number, latest)
    log.info("calibrated", project=project, labels=len(known), stage=choice.model.stage.value, new=choice.new, why=choice.why)
    return Calibrated(project, len(known), choice.new, choice.why)


def labelled(session: Session, project: int, policy: Policy) -> list[Label]:
    """What people judged, oldest first, each with its weight."""
    judged = labels.judged(session, project, LABELS)
    standing = _standing(judged, labels.unjudged(session, project)) if judged else {}
    return [_label(one, policy, standing) for one in judged]


def _champion(session: Session, project: int, latest: calibrations.Latest | None, policy: Policy) -> Model | None:
    return None if latest is None or latest.policy != policy.digest else read_model(session, project, latest.version)


def _keep(engine: Engine, project: int, policy: Policy, choice: Choice, until: int, latest: calibrations.Latest | None) -> None:
    with transaction(engine) as session:
        if choice.new or latest is None:
            body = choice.model.packed()
            calibrations.add(session, project, model.digest(body), policy.digest, until, choice.why, body)
        else:
            calibrations.looked(session, project, latest.version, until)


# --- labels ----------------------------------------------------------------------------------------------------------


def _standing(judged: Sequence[Judged], unjudged: Mapping[Verdict, float]) -> dict[Verdict, float]:
    """For how many trajectories one label of each verdict stands."""
    counting = [one for one in judged if _counts(one)]
    looked_at = Counter(one.before for one in counting)
    own = {verdict: float(looked_at[verdict]) for verdict in (Verdict.FLAG, Verdict.QUARANTINE)}
    own[Verdict.ACCEPT] = sum(1.0 / one.share for one in counting if one.before is Verdict.ACCEPT and one.share)
    return {verdict: (unjudged.get(verdict, 0.0) + count) / looked_at[verdict] for verdict, count in own.items() if looked_at[verdict]}


def _counts(one: Judged) -> bool:
    if one.canary:
        return False
    return one.before in (Verdict.FLAG, Verdict.QUARANTINE) or (one.before is Verdict.ACCEPT and one.share is not None)


def _label(one: Judged, policy: Policy, standing: Mapping[Verdict, float]) -> Label:
    return Label(
        number=one.number,
        cluster=str(one.key) if one.group is None else f"group {one.group}",
        environment=one.environment,
        seen=seen(policy, one.findings),
        bad=one.bad,
        cause=one.cause,
        weight=standing.get(one.before, 1.0) if one.before is not None and _counts(one) else 1.0,
        by_chance=one.share is not None,
        canary=one.canary,
    )


def seen(policy: Policy, findings: Sequence[Finding]) -> tuple[Seen, ...]:
    """The heaviest finding of each check, of those that count towards the probability."""
    heaviest: dict[str, Seen] = {}
    for w in sorted(policy.weigh(findings, policy.precision), key=lambda w: -w.weight):
        if w.ruling.weighs:
            heaviest.setdefault(w.by, Seen(w.finding.check, w.finding.version, bounded(w.finding.score), w.precision, w.finding.cause))
    return tuple(heaviest[name] for name in sorted(heaviest))
