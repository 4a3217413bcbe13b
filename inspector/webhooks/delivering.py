"""What is due to webhooks: claimed, posted through `egress`, and noted.

The log is the queue: a webhook is a cursor in it, which moves only after an answer of success, and past what is not
wanted. Whoever dies between the answer and the note has the same message posted again, under the same id.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import structlog
from sqlalchemy import Engine

from inspector.client.webhooks import Message, sign
from inspector.egress import Egress, NoAnswer, Refused
from inspector.errors import Gone
from inspector.showable import showable
from inspector.store import decisions, webhooks
from inspector.store.decisions import Head
from inspector.store.session import transaction
from inspector.store.webhooks import Attempt, Claimed
from inspector.verdict import Decision
from inspector.webhooks.patience import pause_s
from inspector.webhooks.signing import signing

log = structlog.get_logger()
LEASE_S = 60.0  # more than one post may take
PAGE = 100  # decisions of one webhook before the next one has its turn
SHOWN = 1000  # characters of a foreign answer
GONE = 410


class _Outgoing(NamedTuple):
    """A message, and what it tells of."""

    id: str
    seq: int | None
    body: bytes


class _Told(NamedTuple):
    """What came of a post."""

    attempt: Attempt
    headers: Mapping[str, str]

    @property
    def taken(self) -> bool:
        return self.attempt.status is not None and 200 <= self.attempt.status < 300


class Deliverer:
    """Serves whatever webhook is due; several may work at once."""

    def __init__(self, engine: Engine, egress: Egress, operators_key: str, *, chance: random.Random | None = None) -> None:
        self._engine, self._egress, self._key = engine, egress, operators_key
        self._chance = chance or random.Random()  # noqa: S311 -- spreads retries

    def drain(self, visit_s: float) -> int:
        """Post what is due, for about so long; how many posts were made."""
        end, posts = time.monotonic() + visit_s, 0
        while time.monotonic() < end:
            with transaction(self._engine) as session:
                claimed = webhooks.claim(session, LEASE_S)
            if claimed is None:
                break
            posts += self._serve(claimed, end)
        return posts

    def _serve(self, claimed: Claimed, end: float) -> int:
        posts = 0
        for _ in range(claimed.tests):
            self._note(claimed, self._post(claimed, _test()))
            posts += 1
        with transaction(self._engine) as session:
            if claimed.tests:
                webhooks.tested(session, claimed)
            due = webhooks.is_due(session, claimed)
        if due:
            posts += self._continue(claimed, end)
        with transaction(self._engine) as session:
            webhooks.release(session, claimed)
        return posts

    def _continue(self, claimed: Claimed, end: float) -> int:
        """Go on behind the cursor."""
        try:
            with transaction(self._engine) as session:
                head, found = decisions.page(session, claimed.project, claimed.epoch, claimed.seq, PAGE)
        except Gone as error:
            return int(self._start_anew(claimed, error.reason))
        return self._deliver(claimed, head, found, end)

    def _start_anew(self, claimed: Claimed, reason: str) -> bool:
        """What was to be told cannot be told any more: say so, and go on from here."""
        with transaction(self._engine) as session:
            head = decisions.head(session, claimed.project)
        told = self._post(claimed, _restarted(head, reason))
        return self._settle(claimed, told, head.epoch, head.seq, claimed.failures)

    def _deliver(self, claimed: Claimed, head: Head, found: Sequence[Decision], end: float) -> int:
        posts, passed = 0, claimed.seq
        for decision in found:
            if _wanted(claimed, decision):
                if posts and time.monotonic() > end:
                    break
                posts += 1
                before = claimed.failures if posts == 1 else 0  # they were of this message
                if not self._settle(claimed, self._post(claimed, _of(decision, head.epoch)), head.epoch, decision.seq, before):
                    return posts
            passed = decision.seq
        with transaction(self._engine) as session:
            webhooks.move(session, claimed, head.epoch, passed, LEASE_S)
        return posts

    def _post(self, claimed: Claimed, outgoing: _Outgoing) -> _Told:
        """One post; what it costs and says is for the owner to see."""
        stamp, began = int(time.time()), time.monotonic()
        secrets = signing(self._key, claimed.id, claimed.generation, overlap=claimed.overlap)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "inspector-webhooks",
            "webhook-id": outgoing.id,
            "webhook-timestamp": str(stamp),
            "webhook-signature": sign(secrets, outgoing.id, stamp, outgoing.body),
        }
        try:
            answer = self._egress.post(claimed.url, outgoing.body, headers)
        except (Refused, NoAnswer) as error:
            return _Told(Attempt(outgoing.id, outgoing.seq, None, _ms(began), showable(str(error), limit=SHOWN)), {})
        said = showable(answer.body[:SHOWN].decode(errors="replace"), limit=SHOWN)
        return _Told(Attempt(outgoing.id, outgoing.seq, answer.status, _ms(began), said), answer.headers)

    def _note(self, claimed: Claimed, told: _Told) -> None:
        with transaction(self._engine) as session:
            webhooks.note(session, claimed.id, told.attempt)

    def _settle(self, claimed: Claimed, told: _Told, epoch: UUID, seq: int, failed_before: int) -> bool:
        """Note an attempt, and move on or wait; False where this webhook is not to be served any further now."""
        with transaction(self._engine) as session:
            webhooks.note(session, claimed.id, told.attempt)
            if told.taken:
                return webhooks.move(session, claimed, epoch, seq, LEASE_S)
            failures = failed_before + 1
            pause = None if told.attempt.status == GONE else pause_s(failures, told.headers, self._chance)
            if pause is not None:
                webhooks.postpone(session, claimed, pause)
            else:
                why = "it answered 410: gone" if told.attempt.status == GONE else f"{failures} attempts in a row failed, the last with: {_words(told.attempt)}"
                webhooks.disable(session, claimed, why)
                log.error("webhook disabled", webhook=str(claimed.id), project=claimed.project, why=why)
        return False


def _wanted(claimed: Claimed, decision: Decision) -> bool:
    return (claimed.scopes is None or decision.scope in claimed.scopes) and (claimed.actions is None or decision.action in claimed.actions)


def _of(decision: Decision, epoch: UUID) -> _Outgoing:
    at = decision.decided_at or datetime.now(UTC)
    return _outgoing(f"msg_{epoch.hex}_{decision.seq}", decision.seq, f"decision.{decision.action}", at, {"epoch": epoch, "decision": decision})


def _restarted(head: Head, reason: str) -> _Outgoing:
    told = {"epoch": head.epoch, "seq": head.seq, "snapshot": "/v1/decisions/snapshot", "reason": reason}
    return _outgoing(f"msg_{head.epoch.hex}_{head.seq}_restarted", None, "feed.restarted", datetime.now(UTC), told)


def _test() -> _Outgoing:
    now = datetime.now(UTC)
    return _outgoing(f"test_{time.time_ns()}", None, "webhook.test", now, {})


def _outgoing(id_: str, seq: int | None, type_: str, at: datetime, data: dict[str, Any]) -> _Outgoing:
    return _Outgoing(id_, seq, msgspec.json.encode(Message(type_, at, data)))


def _words(attempt: Attempt) -> str:
    return f"status {attempt.status}" if attempt.status is not None else attempt.said


def _ms(began: float) -> int:
    return int((time.monotonic() - began) * 1000)
