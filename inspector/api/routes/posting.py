"""POST /v1/trajectories: lines go in, receipts come out, and what is acknowledged is durable."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from fastapi import APIRouter, Request, Response

from inspector.api.access import Poster
from inspector.api.answers import JSON, NDJSON, encode, encode_lines
from inspector.api.batcher import Accepted, Taken
from inspector.api.desk import Rulings
from inspector.api.direct import Direct
from inspector.api.openapi import documented
from inspector.api.parameters import LONGEST_WAIT_S, Wait
from inspector.api.reading import in_time, media_type
from inspector.api.service import Service
from inspector.api.wire import LineReceipt, Ruling, ruling
from inspector.bodies import Body, collect
from inspector.errors import BadSubmission, InspectorError, TooLarge, Unavailable, UnknownEncoding
from inspector.intake import Posting, Project, Receipt, Status
from inspector.keys import received_at
from inspector.store.decisions import Head
from inspector.store.projects import Principal
from inspector.trajectory import Posted
from inspector.verdict import Action, Mode

router = APIRouter(route_class=Direct)
LINES = {NDJSON, "application/ndjson", "application/jsonl", "application/x-jsonlines"}
BODY_S = 120.0  # for a whole body to arrive
STATUS_CODE = {Status.CREATED: 201, Status.DUPLICATE: 200, Status.CONFLICT: 409, Status.REJECTED: 422}


@router.post("/v1/trajectories", **documented(LineReceipt, 200, 201, 409, 408, 413, 415, 429, 503, 507, body=Posted, lines=True))
async def post_trajectories(request: Request, who: Poster, wait: Wait = 0.0) -> Response:
    """Post one trajectory (JSON) or many (NDJSON; plain, gzip or zstd). What is answered `created` is on the disk.

    NDJSON is answered 200 with a receipt for each line. One trajectory is answered by its status: 201 created, 200
    duplicate, 409 conflict, 422 rejected. With `wait` the receipts carry the decisions that are ready in time; it never
    changes the status.
    """
    service: Service = request.app.state.service
    single = media_type(request) == JSON
    if not single and media_type(request) not in LINES:
        raise UnknownEncoding(f"Content-Type {media_type(request)[:80]!r}: {JSON} and {NDJSON} are read")
    try:
        await service.rates.spend(who.project)
        answer = _one if single else _many
        return await answer(service, who, await _body(request, service), min(wait, LONGEST_WAIT_S), request)
    except InspectorError as error:
        service.metrics.refused.labels(type(error).__name__).inc()
        raise


async def _body(request: Request, service: Service) -> Body:
    declared = request.headers.get("content-length")
    size = int(declared) if declared is not None and declared.isdecimal() else None
    encoding = request.headers.get("content-encoding")
    async with in_time(BODY_S):
        return await collect(request.stream(), encoding, service.settings.limits, service.budget, declared_bytes=size)


async def _many(service: Service, who: Principal, body: Body, wait_s: float, request: Request) -> Response:
    with body:
        numbers = list(body.numbers)
        posting = Posting(body.lines, body.refused, body.frames)
        accepted = await service.threads.take_in(service.accept, _project(who), posting)
    rulings = await _rulings(service, who, accepted.receipts, wait_s)
    request.scope["told"].update({"lines": len(numbers), "bytes": body.received_bytes, **_counts(accepted.receipts)})
    lines = [_line(number, receipt, rulings, wait_s, service) for number, receipt in zip(numbers, accepted.receipts, strict=True)]
    return Response(encode_lines(lines), 200, _head(accepted.head), NDJSON)


async def _one(service: Service, who: Principal, body: Body, wait_s: float, request: Request) -> Response:
    with body:
        taken = await _take(service, _project(who), _joined(body))
    rulings = await _rulings(service, who, [taken.receipt], wait_s)
    request.scope["told"]["quiet"] = taken.receipt.status is Status.CREATED  # counted in the line of its flush
    receipt = _line(0, taken.receipt, rulings, wait_s, service)
    return Response(encode(receipt), STATUS_CODE[taken.receipt.status], _head(taken.head), JSON)


async def _take(service: Service, project: Project, line: bytes) -> Taken:
    if len(line) < service.settings.flush_bytes:
        return await service.batcher.post(project, line)
    accepted: Accepted = await service.threads.take_in(service.accept, project, Posting([line], {}, None))
    return Taken(accepted.receipts[0], accepted.head)


def _joined(body: Body) -> bytes:
    """The one document. Where it was sent over several lines their ends become spaces, which in JSON mean the same."""
    if body.refused:
        raise TooLarge(next(iter(body.refused.values())))
    if not body.lines:
        raise BadSubmission("an empty body", path="$")
    return body.lines[0] if len(body.lines) == 1 else b" ".join(body.lines)


async def _rulings(service: Service, who: Principal, receipts: Sequence[Receipt], wait_s: float) -> Rulings:
    """What is decided in time; the lines are stored, so nothing that fails here may fail the answer."""
    if wait_s <= 0:
        return {}
    keys = [receipt.key for receipt in receipts if receipt.key is not None and receipt.status in (Status.CREATED, Status.DUPLICATE)]
    try:
        return await service.desk.rulings(who.project, keys, wait_s)
    except Unavailable:
        return {}


def _line(number: int, receipt: Receipt, rulings: Rulings, wait_s: float, service: Service) -> LineReceipt:
    return LineReceipt(
        line=number,
        status=receipt.status.value,
        id=receipt.id,
        key=receipt.key,
        reason=receipt.reason,
        path=receipt.path,
        mode=receipt.mode,
        decision=_decision(receipt, rulings, wait_s, service.settings.hold_s),
    )


def _decision(receipt: Receipt, rulings: Rulings, wait_s: float, hold_s: float) -> Ruling | None:
    if receipt.key is None or receipt.status in (Status.CONFLICT, Status.REJECTED) or wait_s <= 0:
        return None
    ruled = rulings.get(receipt.key)
    return ruling(ruled) if ruled is not None else hold(receipt.key, receipt.mode, hold_s)


def hold(key: UUID, mode: Mode | None, hold_s: float) -> Ruling | None:
    """What a trainer of an enforced run does with a trajectory that is not judged yet, for a while."""
    until = received_at(key) + timedelta(seconds=hold_s)
    if mode is not Mode.ENFORCE or datetime.now(UTC) >= until:
        return None
    return Ruling(action=Action.HOLD, final=False, mode=mode, enforced=True, until=until)


def _counts(receipts: Sequence[Receipt]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for receipt in receipts:
        counts[receipt.status.value] = counts.get(receipt.status.value, 0) + 1
    return counts


def _head(head: Head | None) -> dict[str, str]:
    return {} if head is None else {"Inspector-Epoch": str(head.epoch), "Inspector-Seq": str(head.seq)}


def _project(who: Principal) -> Project:
    assert who.project_uuid is not None, "a key that may post belongs to a project"
    return Project(who.project, who.project_uuid)
