"""Environment versions and tasks: what owners declare, and the state that people put them in."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Depends, Response
from sqlmodel import Session

from inspector import quarantine, settling, solving
from inspector.api import cursors
from inspector.api.access import Anybody, Member, Owner, StateKeeper, project_of
from inspector.api.answers import answer
from inspector.api.openapi import documented
from inspector.api.parameters import After, Limit, Name
from inspector.api.reading import JsonBody
from inspector.api.sessions import SessionDep
from inspector.api.wire import (
    EnvironmentLine,
    EnvironmentPage,
    RolloutsLine,
    StandingAnswer,
    StandingOn,
    StateAnswer,
    StateChange,
    StateRequest,
    rollouts_line,
)
from inspector.errors import BadSubmission, Forbidden
from inspector.standing import conditions
from inspector.store import decisions, environments, standings, states
from inspector.store.environments import EnvironmentName
from inspector.store.projects import Principal
from inspector.store.standings import Place
from inspector.task import Declaration, audit_rate, contradictions

router = APIRouter()
VERSION = "/v1/environments/{environment:path}/versions/{version}"
TASK = VERSION + "/tasks/{task:path}"
Declared = Annotated[Declaration, Depends(JsonBody(Declaration))]
NewState = Annotated[StateRequest, Depends(JsonBody(StateRequest))]


@router.get("/v1/environments", **documented(EnvironmentPage))
def list_environments(session: SessionDep, who: Member, after: After = None, limit: Limit = 50) -> Response:
    """The environment versions that this project posted or declared, with what was last said of their tasks."""
    found = environments.page(session, who.project, cursors.decode(after, int) if after else 0, limit)
    lines = [
        EnvironmentLine(
            environment=e.environment,
            version=e.version,
            state=e.state,
            sampling_weight=e.sampling_weight,
            declared=e.declared,
            owner=e.owner,
            probed=e.scores.probed,
            counts=e.scores.counts,
            probed_at=e.scores.probed_at,
        )
        for e in found
    ]
    return answer(EnvironmentPage(environments=lines, next=cursors.encode(found[-1].id) if len(found) == limit else None))


# The states come before the tasks: the name of a task may hold slashes, and would take in the last word.


@router.put(TASK + "/state", **documented(StateAnswer, 404))
def set_task_state(session: SessionDep, who: StateKeeper, environment: Name, version: Name, task: Name, wanted: NewState) -> Response:
    """Quarantine or release a task: for all where the caller's project declared its version, or is the admin's; else for that project alone."""
    return _set_state(session, who, environment, version, task, wanted)


@router.put(VERSION + "/state", **documented(StateAnswer, 404))
def set_version_state(session: SessionDep, who: StateKeeper, environment: Name, version: Name, wanted: NewState) -> Response:
    """Quarantine or release an environment version: for all where the caller's project declared it, or is the admin's; else for that project alone."""
    return _set_state(session, who, environment, version, None, wanted)


@router.get(TASK, **documented(StandingAnswer, 404))
def read_task(session: SessionDep, who: Anybody, environment: Name, version: Name, task: Name) -> Response:
    """A task, as it was declared and as it stands."""
    return answer(_standing(session, who, environment, version, task))


@router.put(TASK, **documented(StandingAnswer, 409))
def declare_task(session: SessionDep, who: Owner, environment: Name, version: Name, task: Name, declaration: Declared) -> Response:
    """Declare what a task overrides of its environment version."""
    _consistent(declaration)
    environment_version = own_version(session, who, environment, version)
    ids = environments.ensure_tasks(session, [(environment_version, task)])
    environments.declare_task(session, ids[environment_version, task], declaration)
    return answer(_standing(session, who, environment, version, task))


@router.get(VERSION, **documented(StandingAnswer, 404))
def read_version(session: SessionDep, who: Anybody, environment: Name, version: Name) -> Response:
    """An environment version, as it was declared and as it stands."""
    return answer(_standing(session, who, environment, version, None))


@router.put(VERSION, **documented(StandingAnswer, 409))
def declare_version(session: SessionDep, who: Owner, environment: Name, version: Name, declaration: Declared) -> Response:
    """Declare an environment version. The first project to do so owns it."""
    _consistent(declaration)
    environment_version = own_version(session, who, environment, version)
    if environments.declare(session, who.project, environment_version, declaration):
        decisions.announce(session, who.project, states.of_version(session, who.project, environment_version), "declared it")
    return answer(_standing(session, who, environment, version, None))


def own_version(session: Session, who: Principal, environment: str, version: str) -> int:
    """The id, where this project may declare it; raises Forbidden."""
    name = EnvironmentName(environment, version)
    environment_version = environments.ensure(session, who.project, [name])[name]
    environments.lock(session, environment_version)  # of two first declarations one waits, and then finds it owned
    if not environments.owns(session, who.project, environment_version):
        raise Forbidden(f"another project declared {environment}@{version} first, and owns it")
    return environment_version


def _consistent(declaration: Declaration) -> None:
    for path, reason in contradictions(declaration):
        raise BadSubmission(reason, path=path)


def _standing(session: Session, who: Principal, environment: str, version: str, task: str | None) -> StandingAnswer:
    environment_version = environments.find(session, project_of(who), environment, version)
    task_id = environments.find_task(session, project_of(who), environment_version, task) if task is not None else None
    declaration = environments.declaration(session, environment_version, task_id)
    state, weight = states.of(session, project_of(who), environment_version, task_id)
    return StandingAnswer(
        environment=environment,
        version=version,
        state=state,
        declared=declaration.declared,
        declaration=declaration,
        task=task,
        sampling_weight=weight,
        audit_rate=audit_rate(state),
        rollouts=_rollouts(session, project_of(who), task_id),
        standing=_standing_on(session, Place(environment_version, task_id or states.WHOLE), task),
        changes=[StateChange(**change._asdict()) for change in states.changes(session, environment_version, task_id)],
    )


def _rollouts(session: Session, project: int | None, task: int | None) -> RolloutsLine | None:
    return None if project is None or task is None else rollouts_line(solving.of_tasks(session, project, [task]).get(task))


def _standing_on(session: Session, place: Place, task: str | None) -> StandingOn | None:
    row = standings.of(session, place)
    if row is None:
        return None
    now = row.now
    return StandingOn(
        state=now.state,
        why=now.why.value,
        since=now.since or standings.ORIGIN,
        held=now.held,
        evidence=asdict(row.evidence),
        release=conditions(now, row.evidence),
        reproduce=settling.command(session, place, task),
    )


def _set_state(session: Session, who: Principal, environment: str, version: str, task: str | None, wanted: StateRequest) -> Response:
    author = f"person:{who.name}"
    told = quarantine.set_state(
        session,
        environment,
        version,
        task,
        wanted.state,
        author=author,
        note=wanted.note,
        weight=wanted.sampling_weight,
        hold=wanted.hold,
        project=project_of(who),
    )
    decisions.notify(session, told)
    now = _standing(session, who, environment, version, task)
    return answer(
        StateAnswer(
            environment=environment,
            version=version,
            task=task,
            state=now.state,
            sampling_weight=now.sampling_weight,
            for_all=quarantine.decides_for_all(session, project_of(who), environment, version),
            projects_told=len(told),
            seq=told.get(who.project),
        )
    )
