"""Whether a probability means what it says, and what chance picked for people to find that out."""

from __future__ import annotations

from fastapi import APIRouter, Response

from inspector.api.access import Reader
from inspector.api.answers import answer
from inspector.api.openapi import documented
from inspector.api.parameters import Limit
from inspector.api.sessions import ServiceDep, SessionDep
from inspector.api.wire_calibration import BelievedShare, CalibrationAnswer, CheckBelief, SpotCheck, SpotChecks, ThresholdsAnswer
from inspector.audit.beliefs import read_model
from inspector.calibration import model
from inspector.calibration.model import Model
from inspector.calibration.records import UNKNOWN
from inspector.catalog import Catalog
from inspector.combine import Beta
from inspector.policy import Policy
from inspector.store import calibrations, labels, trajectories
from inspector.store.calibrations import Latest
from inspector.store.trajectories import Summary
from inspector.verdict import Cause, Tier

router = APIRouter()


@router.get("/v1/calibration", **documented(CalibrationAnswer))
def read_calibration(session: SessionDep, service: ServiceDep, who: Reader) -> Response:
    """Precision and recall of each check, the model that holds, its errors, and the thresholds that the costs give."""
    latest = calibrations.latest(session, who.project)
    holds = latest if latest is not None and latest.policy == service.policy.digest else None
    found = None if holds is None else read_model(session, who.project, holds.version)
    return answer(_told(service.policy, service.catalog, holds, found))


@router.get("/v1/triage/spot-checks", **documented(SpotChecks))
def list_spot_checks(session: SessionDep, who: Reader, limit: Limit = 50) -> Response:
    """Trajectories that chance picked, whatever the checks say of them: only such labels tell what the checks miss."""
    keys = labels.open_picks(session, who.project, limit)
    about = {summary.key: summary for summary in trajectories.summaries(session, who.project, keys)}
    return answer(SpotChecks(spot_checks=[_spot_check(about[key]) for key in keys if key in about]))


def _spot_check(about: Summary) -> SpotCheck:
    return SpotCheck(key=about.key, id=about.id, environment=about.environment, version=about.version, task=about.task, run=about.run, reward=about.reward)


def _told(policy: Policy, catalog: Catalog, latest: Latest | None, found: Model | None) -> CalibrationAnswer:
    held = found or Model(policy=policy.digest)
    names = {f"{check.name}@{check.version}" for check in catalog.checks.values()} | held.records.keys()
    return CalibrationAnswer(
        policy=policy.name,
        thresholds=ThresholdsAnswer(**policy.thresholds._asdict()),
        costs=policy.costs,
        version=latest.version if latest is not None and found is not None else None,
        digest=model.digest(found.packed()).hex() if found is not None else None,
        stage=held.stage.value,
        labels=held.labels,
        positives=held.positives,
        why=latest.why if latest is not None and found is not None else None,
        fitted_at=latest.fitted_at if latest is not None and found is not None else None,
        measured=held.measured,
        checks=[_check(policy, catalog, held, name) for name in sorted(names)],
    )


def _check(policy: Policy, catalog: Catalog, held: Model, name: str) -> CheckBelief:
    check, _, number = name.rpartition("@")
    version = int(number)
    installed, record = catalog.checks.get(check), held.records.get(name, UNKNOWN)
    known = installed is not None and installed.version == version
    tier, cause = (installed.tier, installed.cause) if installed is not None and known else (None, None)
    precision = None if tier is None or cause is None else record.precision(policy.precision(check, version, tier, cause))
    return CheckBelief(
        check=check,
        version=version,
        tier=tier,
        cause=cause,
        labels=record.labels,
        right=record.right,
        wrong=record.wrong,
        caught=record.caught,
        missed=record.missed,
        precision=None if precision is None else _share(precision),
        recall=_share(record.recall(policy.believed_recall(check))),
        proves=precision is not None and cause is Cause.POLICY_EXPLOIT and tier is Tier.ACTION and precision.lower >= policy.proof,
    )


def _share(believed: Beta) -> BelievedShare:
    return BelievedShare(mean=believed.mean, lower=believed.lower)
