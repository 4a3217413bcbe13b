"""Projects, for the installation's admin."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from inspector.api.access import Admin
from inspector.api.answers import answer
from inspector.api.openapi import documented
from inspector.api.reading import JsonBody
from inspector.api.routes.keys import new_key
from inspector.api.sessions import SessionDep
from inspector.api.wire import NewProjectAnswer, ProjectLine, ProjectList, ProjectRequest
from inspector.store import projects
from inspector.store.projects import Role

router = APIRouter()


@router.post("/v1/projects", **documented(NewProjectAnswer, 201, 409))
def create_project(session: SessionDep, who: Admin, wanted: Annotated[ProjectRequest, Depends(JsonBody(ProjectRequest))]) -> Response:
    """A new project with its first key, of role owner, which is shown this once."""
    uuid = projects.create(session, wanted.name)
    project, _ = projects.by_name(session, wanted.name)
    return answer(NewProjectAnswer(name=wanted.name, project=uuid, key=new_key(session, project, "owner", Role.OWNER)), 201)


@router.get("/v1/projects", **documented(ProjectList))
def list_projects(session: SessionDep, who: Admin) -> Response:
    """All projects, by name."""
    found = projects.listing(session)
    return answer(ProjectList(projects=[ProjectLine(name=name, project=uuid, created_at=created_at) for name, uuid, created_at in found]))
