"""API keys of a project, or of the installation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Response
from sqlmodel import Session

from inspector.api.access import Anybody, OwnerOrAdmin, project_of
from inspector.api.answers import answer
from inspector.api.openapi import documented
from inspector.api.reading import JsonBody
from inspector.api.sessions import SessionDep
from inspector.api.wire import KeyLine, KeyList, KeyRequest, MeAnswer, NewKeyAnswer
from inspector.errors import BadSubmission, Forbidden
from inspector.store import projects
from inspector.store.projects import INSTALLATION, Principal, Role

router = APIRouter()


@router.get("/v1/me", **documented(MeAnswer))
async def read_me(who: Anybody) -> Response:
    """Whose key this is."""
    return answer(MeAnswer(key=who.key, name=who.name, role=who.role, project=who.project_name, project_id=who.project_uuid))


@router.post("/v1/keys", **documented(NewKeyAnswer, 201, 404))
def create_key(session: SessionDep, who: OwnerOrAdmin, wanted: Annotated[KeyRequest, Depends(JsonBody(KeyRequest))]) -> Response:
    """A new key; its secret is shown in this answer and never again."""
    project = _project(session, who, wanted)
    expires_at = datetime.now(UTC) + timedelta(days=wanted.expires_in_days) if wanted.expires_in_days is not None else None
    return answer(new_key(session, project, wanted.name, wanted.role, expires_at), 201)


@router.get("/v1/keys", **documented(KeyList))
def list_keys(session: SessionDep, who: OwnerOrAdmin) -> Response:
    """All keys of the project, the ended ones included."""
    return answer(KeyList(keys=[KeyLine(**key._asdict()) for key in projects.keys(session, project_of(who))]))


@router.delete("/v1/keys/{id}", **documented(None, 204, 404))
def revoke_key(session: SessionDep, who: OwnerOrAdmin, id: UUID) -> Response:
    """End a key, and the sessions opened with it, within 5 seconds."""
    projects.revoke_key(session, project_of(who), id)
    return Response(None, 204)


def new_key(session: Session, project: int | None, name: str, role: Role, expires_at: datetime | None = None) -> NewKeyAnswer:
    """Make a key and say its secret."""
    made = projects.add_key(session, project, name, role, expires_at)
    return NewKeyAnswer(id=made.id, name=name, role=role, key=made.secret, expires_at=expires_at)


def _project(session: Session, who: Principal, wanted: KeyRequest) -> int | None:
    """Where the key is to belong; an owner's keys belong to its own project."""
    if who.role is Role.OWNER:
        if wanted.role in INSTALLATION:
            raise Forbidden(f"only the installation's admin makes keys of role {wanted.role}")
        if wanted.project not in (None, who.project_name):
            raise Forbidden("an owner makes keys for its own project only")
        return who.project
    if (wanted.project is None) != (wanted.role in INSTALLATION):
        raise BadSubmission(f"a key of role {' or '.join(INSTALLATION)} belongs to no project, every other key to one", path="$.project")
    return projects.by_name(session, wanted.project)[0] if wanted.project is not None else None
