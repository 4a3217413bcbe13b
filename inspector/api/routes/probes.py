"""Probes of environment versions: what is registered, asked for, cancelled and read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from fastapi import APIRouter, Depends, Path, Query, Response
from sqlmodel import Session
from starlette.background import BackgroundTask

from inspector import probing, solving
from inspector.api import cursors
from inspector.api.access import Anybody, Member, Owner, project_of
from inspector.api.answers import answer
from inspector.api.openapi import documented
from inspector.api.parameters import After, Limit, Name
from inspector.api.reading import LARGE, JsonBody
from inspector.api.routes.environments import VERSION, own_version
from inspector.api.sessions import ServiceDep, SessionDep
from inspector.api.wire import rollouts_line
from inspector.api.wire_probes import (
    BudgetOfProbe,
    PackageAnswer,
    PackageRequest,
    ProbeAnswer,
    ProbedTask,
    ProbedTaskPage,
    ProbeLine,
    ProbePage,
    ProbeRequest,
    Scorecard,
    ScoreLine,
    Spent,
)
from inspector.errors import BadSubmission, TooLarge, Unknown
from inspector.packing import PACKAGE_BYTES
from inspector.probe.words import Outcome
from inspector.store import artifacts, environments, packages, probes
from inspector.store.packages import NO_SCORES, Package, Registered
from inspector.store.probes import OVER, Asked, Budget, Place, Priority, Probe, TaskOfProbe

router = APIRouter()
ProbeId = Annotated[UUID, Path(description="of the probe")]
Filtered = Annotated[Name | None, Query()]
NAMES = {
    "reasoning_gym": re.compile(r"[a-z0-9_]{1,100}"),
    "verifiers": re.compile(r"[A-Za-z0-9_][\w./@-]{0,199}"),
    "http_verifier": re.compile(r"https?://\S{1,400}"),
}
NO_HINTS = b"[]"


@router.put(VERSION + "/package", **documented(PackageAnswer, 201, 200, 404, 409))
def register_package(
    session: SessionDep, who: Owner, environment: Name, version: Name, wanted: Annotated[PackageRequest, Depends(JsonBody(PackageRequest))]
) -> Response:
    """Say of which uploaded tar a version is made, or what it is called elsewhere. 201 when it is new, 200 when it was said before.

    The first project to do so owns it.
    """
    _whole(wanted)
    environment_version = own_version(session, who, environment, version)
    if wanted.artifact and (length := artifacts.length_of(session, who.project, wanted.artifact)) > PACKAGE_BYTES:
        raise TooLarge(f"a package of {length} bytes, the limit is {PACKAGE_BYTES}", path="$.artifact")
    new = probing.register(session, who.project, environment_version, Package(wanted.artifact, wanted.face, wanted.entry, wanted.dataset))
    return answer(_package(environment, version, packages.of(session, environment_version)), 201 if new else 200)


def _whole(wanted: PackageRequest) -> None:
    """Raises BadSubmission where a part is missing, or one too many."""
    if (named := NAMES.get(wanted.face)) is None:
        if wanted.artifact is None:
            raise BadSubmission(f"the face {wanted.face} is opened from an uploaded tar", path="$.artifact")
    elif wanted.entry is None or not named.fullmatch(wanted.entry):
        raise BadSubmission(f"the face {wanted.face} needs a name as {named.pattern}", path="$.entry")
    elif wanted.face == "http_verifier" and (wanted.artifact is None or wanted.dataset is None):
        raise BadSubmission("an HTTP verifier needs an uploaded tar with a data set of rows", path="$.artifact" if wanted.artifact is None else "$.dataset")
    elif wanted.face == "reasoning_gym" and wanted.artifact is not None:
        raise BadSubmission("a data set of reasoning-gym is named, not uploaded", path="$.artifact")


def _package(environment: str, version: str, known: Registered) -> PackageAnswer:
    package = known.package
    return PackageAnswer(
        environment=environment,
        version=version,
        artifact=package.sha256,
        face=package.face,
        entry=package.entry,
        dataset=package.dataset,
        content_version=known.content_version,
        verifier_digest=known.verifier_digest,
        put_at=known.put_at,
    )


@router.get(VERSION + "/package", **documented(PackageAnswer, 404))
def read_package(session: SessionDep, who: Anybody, environment: Name, version: Name) -> Response:
    """What a version is made of, and what the first worker that read it found; for the project that registered it."""
    known = packages.of(session, environments.find(session, project_of(who), environment, version))
    if project_of(who) not in (None, known.project):
        raise Unknown("package of", f"{environment}@{version}")
    return answer(_package(environment, version, known))


@router.post(VERSION + "/probes", **documented(ProbeAnswer, 201, 404))
def start_probe(
    session: SessionDep,
    service: ServiceDep,
    who: Owner,
    environment: Name,
    version: Name,
    wanted: Annotated[ProbeRequest, Depends(JsonBody(ProbeRequest, LARGE))],
) -> Response:
    """Ask for a probe of a version whose package this project registered."""
    asked = Asked(wanted.depth, wanted.tasks, Priority[wanted.priority.upper()], Budget(wanted.budget.cpu_s, wanted.budget.wall_s))
    made = probing.ask(session, who.project, environment, version, asked)
    answered = answer(_answer(session, probes.find(session, who.project, made)), 201)
    answered.background = BackgroundTask(service.probe_bell.ring)  # after the commit, which comes before the answer leaves
    return answered


@router.get(VERSION + "/scorecard", **documented(Scorecard, 404))
def read_scorecard(
    session: SessionDep, who: Anybody, environment: Name, version: Name, outcome: Outcome | None = None, after: After = None, limit: Limit = 50
) -> Response:
    """What was last said of each task of a version, worst first, with counts of all; those of one `outcome` may come on pages that are not full.

    All projects that see the version see it, the lint's hints only who registered it.
    """
    environment_version = environments.find(session, project_of(who), environment, version)
    known = _known(session, environment_version)
    scores = known.scores if known else NO_SCORES
    found = probes.gravest(session, environment_version, cursors.decode(after, Place) if after else None, limit, outcome)
    rollouts = solving.of_tasks(session, who.project, [one.place.id for one in found.tasks]) if project_of(who) is not None else {}
    ours = known is not None and project_of(who) in (None, known.project)
    return answer(
        Scorecard(
            environment=environment,
            version=version,
            content_version=known.content_version if known else None,
            verifier_digest=known.verifier_digest if known else None,
            probed=scores.probed,
            counts=scores.counts,
            probed_at=scores.probed_at,
            hints=msgspec.Raw((known.hints if known and ours else None) or NO_HINTS),
            tasks=[
                ScoreLine(task=one.task, outcomes=one.outcomes, probe=one.probe, probed_at=one.probed_at, rollouts=rollouts_line(rollouts.get(one.place.id)))
                for one in found.tasks
            ],
            next=cursors.encode(found.last) if found.last else None,
        )
    )


def _known(session: Session, environment_version: int) -> Registered | None:
    try:
        return packages.of(session, environment_version)
    except Unknown:
        return None


@router.get("/v1/probes", **documented(ProbePage))
def list_probes(session: SessionDep, who: Member, environment: Filtered = None, version: Filtered = None, after: After = None, limit: Limit = 50) -> Response:
    """The probes that this project asked for, of all versions or of one, newest first."""
    before = cursors.decode(after, UUID) if after else None
    if environment is None and version is None:
        found = probes.page(session, who.project, before, limit)
    elif environment is None or version is None:
        raise BadSubmission("environment and version go together", path="query.version" if version is None else "query.environment")
    else:
        found = probes.of_version(session, who.project, environments.find(session, who.project, environment, version), before, limit)
    return answer(ProbePage(probes=[_line(probe) for probe in found], next=cursors.encode(found[-1].id) if len(found) == limit else None))


def _line(probe: Probe) -> ProbeLine:
    return ProbeLine(
        id=probe.id,
        environment=probe.environment,
        version=probe.version,
        state=probe.state,
        priority=probe.asked.priority.name.lower(),
        done=probe.closed,
        total=probe.total,
        asked_at=probe.asked_at,
        ended_at=probe.ended_at,
    )


@router.get("/v1/probes/{id}", **documented(ProbeAnswer, 404))
def read_probe(session: SessionDep, who: Anybody, id: ProbeId) -> Response:
    """A probe of this project's, as it stands."""
    return answer(_answer(session, probes.find(session, project_of(who), id)))


@router.get("/v1/probes/{id}/tasks", **documented(ProbedTaskPage, 404))
def list_probed_tasks(session: SessionDep, who: Anybody, id: ProbeId, after: After = None, limit: Limit = 50) -> Response:
    """Its tasks with their reports, in the order of the version's tasks; those that wait are there too."""
    probe = probes.find(session, project_of(who), id)
    found = probes.tasks(session, id, cursors.decode(after, int) if after else 0, limit)
    tasks = [_task(one) for one in found if one.outcomes is not None or probe.state not in OVER or one.running]
    return answer(ProbedTaskPage(tasks=tasks, next=cursors.encode(found[-1].id) if len(found) == limit else None))


def _task(one: TaskOfProbe) -> ProbedTask:
    state: Literal["waiting", "running", "done"] = "done" if one.outcomes is not None else "running" if one.running else "waiting"
    return ProbedTask(task=one.task, state=state, outcomes=one.outcomes, report=None if one.report is None else msgspec.Raw(one.report))


@router.get("/v1/probes/{id}/tasks/{task:path}", **documented(ProbedTask, 404))
def read_probed_task(session: SessionDep, who: Anybody, id: ProbeId, task: Name) -> Response:
    """One of its tasks with its report."""
    return answer(_task(probes.task_of(session, probes.find(session, project_of(who), id), task)))


@router.post("/v1/probes/{id}/cancel", **documented(ProbeAnswer, 404, 409))
def cancel_probe(session: SessionDep, who: Owner, id: ProbeId) -> Response:
    """End a probe before its next task. What was found stands."""
    probing.cancel(session, who.project, id)
    return answer(_answer(session, probes.find(session, who.project, id)))


def _answer(session: Session, probe: Probe) -> ProbeAnswer:
    tasks: Sequence[str] | None = probe.asked.tasks
    return ProbeAnswer(
        id=probe.id,
        environment=probe.environment,
        version=probe.version,
        state=probe.state,
        depth=probe.asked.depth,
        tasks=tasks,
        priority=probe.asked.priority.name.lower(),
        done=probe.closed,
        total=probe.total,
        outcomes=probes.counts(session, probe.id),
        budget=BudgetOfProbe(cpu_s=probe.asked.budget.cpu_s, wall_s=probe.asked.budget.wall_s),
        spent=Spent(cpu_s=probe.spent.cpu_s or 0.0, wall_s=probe.spent.wall_s or 0.0),
        note=probe.note,
        asked_at=probe.asked_at,
        began_at=probe.began_at,
        ended_at=probe.ended_at,
    )
