"""Files that belong to trajectories: the only way in for final states, logs and images. We never open an address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Request, Response
from fastapi import Path as PathParameter
from fastapi.responses import FileResponse

from inspector.api.access import Member, Poster
from inspector.api.answers import answer
from inspector.api.openapi import documented
from inspector.api.reading import in_time
from inspector.api.service import Service
from inspector.api.sessions import ServiceDep, SessionDep
from inspector.api.wire import ArtifactAnswer
from inspector.errors import UnknownEncoding
from inspector.store import artifacts
from inspector.store.artifacts import Upload
from inspector.store.projects import Principal
from inspector.store.session import transaction

router = APIRouter()
BODY_S = 600.0  # for a whole file to arrive
PIECE = 1 << 20
Digest = Annotated[str, PathParameter(pattern="^[0-9a-f]{64}$", description="sha256 of the file, in hex")]


@router.put("/v1/artifacts/{sha256}", **documented(ArtifactAnswer, 201, 200, 408, 413, 415, 429, 507))
async def put_artifact(request: Request, service: ServiceDep, who: Poster, sha256: Digest) -> Response:
    """Upload a file under its digest, streamed. 201 when it is new, 200 when this project had it already."""
    if request.headers.get("content-encoding", "identity") != "identity":
        raise UnknownEncoding("artifacts are stored as they are sent: no Content-Encoding")
    await service.rates.spend(who.project)
    length, new = await _store(service, who, sha256, _pieces(request))
    return answer(ArtifactAnswer(sha256=sha256, bytes=length), 201 if new else 200)


@router.get("/v1/artifacts/{sha256}", **documented(None, 404))
def get_artifact(session: SessionDep, service: ServiceDep, who: Member, sha256: Digest) -> Response:
    """The file, as an attachment of unknown kind: it is foreign."""
    artifacts.length_of(session, who.project, sha256)
    assert who.project_uuid is not None, "a member's key belongs to a project"
    headers = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox"}
    return FileResponse(artifacts.path_of(_root(service), who.project_uuid, sha256), media_type="application/octet-stream", filename=sha256, headers=headers)


async def _store(service: Service, who: Principal, sha256: str, pieces: AsyncIterator[bytes]) -> tuple[int, bool]:
    assert who.project_uuid is not None, "a key that may post belongs to a project"
    with await asyncio.to_thread(Upload, _root(service), who.project_uuid, sha256, limit_bytes=service.settings.limits.artifact_bytes) as upload:
        async for piece in pieces:
            await service.threads.take_in(upload.write, piece)
        await service.threads.take_in(upload.finish)
        return upload.length, await service.threads.take_in(_note, service, who.project, sha256, upload.length)


def _note(service: Service, project: int, sha256: str, length: int) -> bool:
    with transaction(service.engine) as session:
        return artifacts.add(session, project, sha256, length)


async def _pieces(request: Request) -> AsyncIterator[bytes]:
    held = bytearray()
    async with in_time(BODY_S):
        async for chunk in request.stream():
            held += chunk
            if len(held) >= PIECE:
                yield bytes(held)
                held.clear()
        if held:
            yield bytes(held)


def _root(service: Service) -> Path:
    return service.settings.store_path / "artifacts"
