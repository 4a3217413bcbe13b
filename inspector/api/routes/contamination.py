"""What training runs used of what is known to be bad."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Depends, Query, Response
from sqlmodel import Session

from inspector.api import cursors
from inspector.api.access import Member
from inspector.api.answers import answer
from inspector.api.openapi import documented
from inspector.api.parameters import After, Limit, Name
from inspector.api.sessions import SessionDep
from inspector.api.wire_contamination import (
    ContaminatedUpdate,
    ContaminatedUse,
    ContaminatedUsePage,
    ContaminationPage,
    ContaminationSummary,
    EnvironmentShare,
)
from inspector.contamination import Account, account
from inspector.contamination.accounting import Affected
from inspector.errors import BadSubmission
from inspector.store import contamination, environments, runs, selections, used
from inspector.store.contamination import BadUse, Chosen, UnknownUse
from inspector.verdict import Cause

router = APIRouter()


class What(StrEnum):
    """Which trajectories are taken to be bad."""

    STANDING = "standing"  # what is excluded or overridden by now
    PROVED = "proved"  # of it, confirmed exploits and verifier defects: what advice to go back rests on
    EVERYTHING = "everything"  # all that was posted there


class Filter(NamedTuple):
    """What a caller takes to be bad."""

    what: What | None
    cause: Cause | None
    check: str | None
    environment: str | None
    version: str | None
    task: str | None


def _filter(
    what: Annotated[What | None, Query(description="standing, unless only an environment or task is named: then everything that was posted there")] = None,
    cause: Annotated[Cause | None, Query(description="of the decision")] = None,
    check: Annotated[str | None, Query(max_length=220, description="NAME@VERSION that the decision rests on")] = None,
    environment: Annotated[str | None, Query(max_length=200)] = None,
    version: Annotated[str | None, Query(max_length=200, description="of the environment")] = None,
    task: Annotated[str | None, Query(max_length=200, description="of the environment")] = None,
) -> Filter:
    return Filter(what, cause, check, environment, version, task)


Wanted = Annotated[Filter, Depends(_filter)]


@router.get("/v1/runs/{run:path}/contamination/trajectories", **documented(ContaminatedUsePage, 404))
def list_contaminated(
    session: SessionDep,
    who: Member,
    run: Name,
    wanted: Wanted,
    unknown: Annotated[bool, Query(description="instead, what was used and never posted")] = False,
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """Each use of a bad trajectory, unless it was used with the reward that was decided for it."""
    found = runs.find(session, who.project, run)
    place = cursors.decode(after, tuple[int, int]) if after else (0, -1)
    used.recognise(session, who.project, found.id)
    page: list[BadUse] | list[UnknownUse]
    if unknown:
        page = contamination.unknown(session, found.id, place, limit)
    else:
        page = contamination.uses(session, who.project, found.id, _chosen(session, who.project, wanted), place, limit)
    then = cursors.encode((page[-1].number, page[-1].position)) if len(page) == limit else None
    return answer(ContaminatedUsePage(run=run, uses=[_use(one) for one in page], next=then))


@router.get("/v1/runs/{run:path}/contamination", **documented(ContaminationPage, 404))
def read_contamination(session: SessionDep, who: Member, run: Name, wanted: Wanted, after: After = None, limit: Limit = 50) -> Response:
    """Which updates of a run used something bad or descend from one that did, and how much of their absolute reward it carried."""
    found = runs.find(session, who.project, run)
    told = account(session, who.project, found.id, _chosen(session, who.project, wanted))
    place = cursors.decode(after, int) if after else 0
    page = [one for one in told.affected if one.update.number > place][:limit]
    then = cursors.encode(page[-1].update.number) if len(page) == limit else None
    return answer(ContaminationPage(run=run, summary=_summary(told), updates=[_update(one) for one in page], next=then))


def _chosen(session: Session, project: int, wanted: Filter) -> Chosen:
    """Raises Unknown for what this project does not know, and BadSubmission for what does not go together."""
    placed = wanted.environment is not None
    if not placed and (wanted.version is not None or wanted.task is not None):
        raise BadSubmission("a version or a task is one of an environment: name it too", path="query.environment")
    named = wanted.cause is not None or wanted.check is not None
    what = wanted.what or (What.EVERYTHING if placed and not named else What.STANDING)
    if what is What.EVERYTHING and (named or not placed):
        raise BadSubmission("everything goes with an environment, and with no cause or check", path="query.what")
    versions = environments.versions_of(session, project, wanted.environment, wanted.version) if wanted.environment is not None else None
    return Chosen(
        cause=wanted.cause,
        checks=_checks(session, wanted.check) if wanted.check is not None else None,
        environment_versions=versions,
        tasks=environments.tasks_named(session, versions, wanted.task) if versions is not None and wanted.task is not None else None,
        proved=what is What.PROVED,
        everything=what is What.EVERYTHING,
    )


def _checks(session: Session, check: str) -> list[int]:
    name, _, version = check.rpartition("@")
    if not name or not version.isascii() or not version.isdigit() or len(version) > 9:
        raise BadSubmission(f"{check!r} is not NAME@VERSION", path="query.check")
    return selections.ids_of(session, name, int(version))


def _summary(told: Account) -> ContaminationSummary:
    steps = {one.update.number: one.update.step for one in told.affected}
    return ContaminationSummary(
        updates=told.updates,
        rows=told.used,
        mass=told.mass,
        unknown=told.unknown,
        bad_rows=told.bad.rows,
        bad_trajectories=told.bad.trajectories,
        bad_groups=told.bad.groups,
        bad_mass=told.bad.mass,
        direct_updates=told.direct,
        affected_updates=len(told.affected),
        affected_versions=len({(one.update.attempt, one.update.policy_after) for one in told.affected}),
        first_step=told.first.step if told.first else None,
        last_clean=told.first.policy_before if told.first else None,
        newest_is_clean=told.newest_is_clean,
        environments=[
            EnvironmentShare(
                environment=one.environment, version=one.version, rows=one.rows, trajectories=one.trajectories, groups=one.groups,
                updates=one.updates, first_step=steps[one.first], mass=one.mass,
            )
            for one in told.environments
        ],
    )  # fmt: skip


def _update(one: Affected) -> ContaminatedUpdate:
    update, bad = one.update, one.bad
    return ContaminatedUpdate(
        step=update.step,
        attempt=update.attempt,
        policy_before=update.policy_before,
        policy_after=update.policy_after,
        checkpoint=update.checkpoint,
        rows=update.used,
        mass=update.mass,
        unknown=one.unknown,
        bad_rows=bad.rows,
        bad_trajectories=bad.trajectories,
        bad_mass=bad.mass,
        share=one.share,
        inherited=one.inherited,
    )


def _use(one: BadUse | UnknownUse) -> ContaminatedUse:
    known = one if isinstance(one, BadUse) else None
    return ContaminatedUse(
        step=one.step,
        id=one.id,
        key=known.key if known else None,
        group=known.group if known else None,
        environment=known.environment if known else None,
        version=known.version if known else None,
        task=known.task if known else None,
        weight=one.weight,
        reward=one.reward,
        action=known.action if known else None,
        cause=known.cause if known else None,
        reward_override=known.reward_override if known else None,
    )
