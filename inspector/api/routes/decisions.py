"""The feed of decisions: pages, long polls, snapshots, lookups, and the taking back of a check."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, NamedTuple
from uuid import UUID

import msgspec
from fastapi import APIRouter, Depends, Query, Request, Response

from inspector import review
from inspector.api import cursors
from inspector.api.access import Member, Owner
from inspector.api.answers import answer
from inspector.api.desk import Rulings
from inspector.api.openapi import documented
from inspector.api.parameters import LONGEST_WAIT_S, After, FeedLimit, Wait
from inspector.api.reading import JsonBody
from inspector.api.routes.posting import hold
from inspector.api.service import Service
from inspector.api.sessions import ServiceDep, SessionDep
from inspector.api.wire import FeedPage, LookupAnswer, LookupRequest, RevokeAnswer, RevokeRequest, Ruling, SnapshotPage, StandingState, ruling
from inspector.errors import Gone
from inspector.showable import showable
from inspector.store import decisions, states, trajectories
from inspector.store.decisions import Head
from inspector.store.session import transaction
from inspector.store.states import Place
from inspector.task import audit_rate
from inspector.verdict import Decision, Mode

router = APIRouter()


class _Page(NamedTuple):
    head: Head
    decisions: list[Decision]


class _Cursor(NamedTuple):
    """Of a snapshot: where it is taken, and how far it was read."""

    epoch: UUID
    seq: Annotated[int, msgspec.Meta(ge=0, le=2**62)]
    after: Annotated[int, msgspec.Meta(ge=0, le=2**62)]
    states: tuple[int, int] | None = (0, 0)  # the last place among the states; None when all were told


@router.get("/v1/decisions", **documented(FeedPage, 304, 410))
async def read_decisions(
    request: Request,
    service: ServiceDep,
    who: Member,
    after: Annotated[int, Query(ge=0, le=2**62, description="the seq of the last decision that was read")] = 0,
    epoch: Annotated[str | None, Query(max_length=100)] = None,
    wait: Wait = 0.0,
    limit: FeedLimit = 200,
) -> Response:
    """The decisions behind a cursor, in order and without a gap. With `wait` the answer comes with the next one, or when the time is over."""
    page = await _next_page(request, service, who.project, _epoch(epoch), after, min(wait, LONGEST_WAIT_S), limit)
    last = page.decisions[-1].seq if page.decisions else after
    seq = max(page.head.seq, last)
    etag = f'"{page.head.epoch}-{seq}"'
    if etag in request.headers.get("if-none-match", ""):
        return Response(None, 304, {"ETag": etag})
    body = FeedPage(epoch=page.head.epoch, seq=seq, decisions=page.decisions, more=last < seq and bool(page.decisions))
    return answer(body, 200, {"ETag": etag, "Cache-Control": "no-cache"})


async def _next_page(request: Request, service: Service, project: int, epoch: UUID | None, after: int, wait_s: float, limit: int) -> _Page:
    loop = asyncio.get_running_loop()
    end = loop.time() + wait_s
    with service.hub.watching(project) as watch, service.hub.place(wait_s) as granted:
        while True:
            watch.begin()
            page = await service.threads.read(_read_page, service, project, epoch, after, limit)
            left = end - loop.time()
            if page.decisions or left <= 0 or not granted or service.hub.closing or await request.is_disconnected():
                return page
            await watch.wait(left)


def _read_page(service: Service, project: int, epoch: UUID | None, after: int, limit: int) -> _Page:
    with transaction(service.engine) as session:
        return _Page(*decisions.page(session, project, epoch, after, limit))


def _epoch(text: str | None) -> UUID | None:
    if not text:
        return None
    try:
        return UUID(text)
    except ValueError as error:
        raise Gone(f"epoch {showable(text)!r} is not this log's", path="query.epoch") from error


@router.get("/v1/decisions/snapshot", **documented(SnapshotPage, 410))
def read_snapshot(session: SessionDep, who: Member, after: After = None, limit: FeedLimit = 200) -> Response:
    """What stands at one place of the feed: states that are not active, and decisions that are not `keep`. Read on from its `seq`."""
    head = decisions.head(session, who.project)
    at = cursors.decode(after, _Cursor) if after else _Cursor(head.epoch, head.seq, 0)
    if at.epoch != head.epoch:
        raise Gone("the feed was made anew while its snapshot was read", path="query.after")
    standing = states.page(session, who.project, Place(*at.states), limit) if at.states is not None else []
    more = (*standing[-1][0],) if len(standing) == limit else None
    found = decisions.standing(session, who.project, at.seq, at.after, limit) if more is None else []
    last = found[-1].seq if len(found) == limit else None
    body = SnapshotPage(
        epoch=at.epoch,
        seq=at.seq,
        states=[StandingState(**state._asdict(), audit_rate=audit_rate(state.state)) for _, state in standing],
        decisions=found,
        next=cursors.encode(at._replace(states=more, after=last or at.after)) if more or last else None,
    )
    return answer(body)


class _Known(NamedTuple):
    head: Head
    keys: dict[str, UUID]
    modes: dict[UUID, Mode]


@router.post("/v1/decisions/lookup", **documented(LookupAnswer))
async def look_up(service: ServiceDep, who: Member, asked: Annotated[LookupRequest, Depends(JsonBody(LookupRequest))], wait: Wait = 0.0) -> Response:
    """The decisions about producer ids, kept ones included; one that is still pending is null. With `wait` it waits for those."""
    wait_s = min(wait, LONGEST_WAIT_S)
    known = await service.threads.read(_known, service, who.project, asked.ids)
    rulings = await service.desk.rulings(who.project, list(known.keys.values()), wait_s)
    head = await service.threads.read(service.head, who.project) if wait_s > 0 else known.head
    told = {id_: _told(key, rulings, known, service.settings.hold_s) for id_, key in known.keys.items()}
    unknown = [id_ for id_ in dict.fromkeys(asked.ids) if id_ not in known.keys]
    head = head or known.head
    return answer(LookupAnswer(epoch=head.epoch, seq=head.seq, decisions=told, unknown=unknown))


def _known(service: Service, project: int, ids: Sequence[str]) -> _Known:
    with transaction(service.engine) as session:
        keys = {id_: key for id_, (key, _) in trajectories.known(session, project, ids).items()}
        return _Known(decisions.head(session, project), keys, trajectories.modes(session, list(keys.values())))


def _told(key: UUID, rulings: Rulings, known: _Known, hold_s: float) -> Ruling | None:
    return ruling(rulings[key]) if key in rulings else hold(key, known.modes.get(key), hold_s)


@router.post("/v1/decisions/revoke", **documented(RevokeAnswer, 404))
def revoke(session: SessionDep, who: Owner, asked: Annotated[RevokeRequest, Depends(JsonBody(RevokeRequest))]) -> Response:
    """Take back what rests on one version of a check alone. A preview, which is the default, only counts."""
    done = review.revoke(session, who.project, asked.check, asked.version, who.name, preview=asked.preview)
    if not asked.preview:
        decisions.notify(session, [who.project])
    return answer(RevokeAnswer(**done._asdict(), preview=asked.preview))
