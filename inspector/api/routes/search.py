"""Finds a text in the steps of one trajectory, a bounded stretch of it at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, NamedTuple

import msgspec
from fastapi import APIRouter, Query, Response

from inspector.api import cursors
from inspector.api.access import Reader
from inspector.api.answers import answer
from inspector.api.openapi import documented
from inspector.api.parameters import After, Key
from inspector.api.sessions import ServiceDep, SessionDep
from inspector.step_texts import decoded, field_texts
from inspector.store import trajectories
from inspector.store.segments import StepWindow

router = APIRouter()
WINDOW = 250  # steps read at once
SCAN_STEPS = 5_000  # looked at in one call
SCAN_BYTES = 16 << 20
ENOUGH = 200  # matches after which a call ends with the step it is in
PER_STEP = 100  # matches of one step that are listed; the others are counted
AROUND = 60  # characters of context on each side


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """One place: characters [start, end) of `field` of the step at position `step`."""

    step: int
    field: str
    start: int
    end: int
    before: str
    match: str
    after: str


class SearchAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`scanned` steps were looked at in this call; with `next` there are more to look at."""

    total: int
    scanned: int
    matches: list[Match]
    omitted: int  # matches beyond the first 100 of their step
    next: str | None


class _At(NamedTuple):
    """Of a cursor: the first step to look at."""

    step: Annotated[int, msgspec.Meta(ge=0, le=2**31)]


class _Found(NamedTuple):
    matches: list[Match]
    omitted: int


@router.get("/v1/trajectories/{key}/search", **documented(SearchAnswer, 404))
def search_steps(
    session: SessionDep,
    service: ServiceDep,
    who: Reader,
    key: Key,
    q: Annotated[str, Query(min_length=1, max_length=500, description="taken literally; upper and lower case are the same")],
    after: After = None,
) -> Response:
    """Places of a text in messages, reasoning, tool calls and observations, in the order of the steps."""
    subject = trajectories.find(session, who.project, key)
    start = at = cursors.decode(after, _At).step if after else 0
    matches, omitted, size, wanted = list[Match](), 0, 0, _lowered(q)
    while True:
        window = service.reader.steps(subject.project_uuid, subject.location, at, WINDOW)
        for raw in window.steps:
            found = _in_step(at, raw, wanted)
            matches += found.matches
            omitted += found.omitted
            size, at = size + len(raw), at + 1
            if len(matches) >= ENOUGH or size >= SCAN_BYTES:
                break
        if _over(window, at, len(matches), size, at - start):
            break
    body = SearchAnswer(total=window.total, scanned=at - start, matches=matches, omitted=omitted, next=cursors.encode(_At(at)) if at < window.total else None)
    return answer(body)


def _over(window: StepWindow, at: int, matches: int, size: int, scanned: int) -> bool:
    return not window.steps or at >= window.total or matches >= ENOUGH or size >= SCAN_BYTES or scanned >= SCAN_STEPS


def _in_step(position: int, raw: bytes, wanted: str) -> _Found:
    matches, omitted = list[Match](), 0
    for field, text in field_texts(decoded(raw)):
        for start in _places(_lowered(text), wanted):
            if len(matches) < PER_STEP:
                matches.append(_match(position, field, text, start, start + len(wanted)))
            else:
                omitted += 1
    return _Found(matches, omitted)


def _places(text: str, wanted: str) -> Iterator[int]:
    at = text.find(wanted)
    while at >= 0:
        yield at
        at = text.find(wanted, at + len(wanted))


def _lowered(text: str) -> str:
    """In lower case, every character still at its place: a few would become two."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else "".join(c if len(low := c.lower()) > 1 else low for c in text)


def _match(step: int, field: str, text: str, start: int, end: int) -> Match:
    before, after = text[max(start - AROUND, 0) : start], text[end : end + AROUND]
    parts = [part.encode("utf-8", "backslashreplace").decode() for part in (before, text[start:end], after)]
    return Match(step=step, field=field, start=start, end=end, before=parts[0], match=parts[1], after=parts[2])
