"""Which final states are graded again: a share of those that were paid and of those that were not, the same ones whoever asks."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from sqlmodel import Session

from inspector.audit.subjects import Audited
from inspector.final_states import final_states
from inspector.store import replays


class Shares(NamedTuple):
    """Of what has a final state, how much is graded again."""

    paid: float = 0.05
    unpaid: float = 0.01


def sample(session: Session, audited: Sequence[Audited], shares: Shares) -> None:
    """Have the chosen ones graded again. Several states of one episode are none that a verifier takes."""
    chosen = [
        (a.subject.key, states[0])
        for a in audited
        if a.state is not None and a.subject.reward is not None and _is_chosen(a, shares) and len(states := final_states(a.header)) == 1
    ]
    if chosen:
        replays.sample(session, chosen)


def _is_chosen(audited: Audited, shares: Shares) -> bool:
    return place(audited.subject.key) < (shares.paid if audited.declaration.pays(audited.subject.reward) else shares.unpaid)


def place(key: UUID) -> float:
    """Where a key stands between 0 and 1."""
    return int.from_bytes(hashlib.sha256(key.bytes).digest()[:8], "big") / 2**64
