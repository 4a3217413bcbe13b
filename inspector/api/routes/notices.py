"""Notices to those who answer for environment versions: the project that declared one, else every project that posted it."""

from __future__ import annotations

from fastapi import APIRouter, Response

from inspector.api import cursors
from inspector.api.access import Member
from inspector.api.answers import answer
from inspector.api.openapi import documented
from inspector.api.parameters import After, Limit
from inspector.api.sessions import SessionDep
from inspector.api.wire_notices import NoticeLine, NoticePage
from inspector.store import owner_notices

router = APIRouter()


@router.get("/v1/notices", **documented(NoticePage))
def list_notices(session: SessionDep, who: Member, after: After = None, limit: Limit = 50) -> Response:
    """Newest first."""
    found = owner_notices.page(session, who.project, cursors.decode(after, int) if after else None, limit)
    lines = [NoticeLine(id=one.id, notice=one.notice, noticed_at=one.noticed_at) for one in found]
    return answer(NoticePage(notices=lines, next=cursors.encode(found[-1].id) if len(found) == limit else None))
