"""What chance picks, the same whoever asks: final states that are graded again, and trajectories that a person looks at."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from sqlmodel import Session

from inspector.audit.subjects import Audited
from inspector.final_states import final_states
from inspector.store import labels, replays
from inspector.store.labels import Pick


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


def spot_check(session: Session, audited: Sequence[Audited], share: float) -> None:
    """Have people look at the chosen ones, whatever the checks say of them."""
    places = [(a.subject, place(a.subject.key, b"spot")) for a in audited]
    picked = [Pick(subject.key, subject.project, at, share) for subject, at in places if at < share]
    if picked:
        labels.pick(session, picked)


def place(key: UUID, purpose: bytes = b"") -> float:
    """Where a key stands between 0 and 1; elsewhere for another purpose."""
    return int.from_bytes(hashlib.sha256(purpose + key.bytes).digest()[:8], "big") / 2**64
