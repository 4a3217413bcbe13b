"""What chance picks, the same whoever asks: final states that are graded again, and trajectories that a person looks at."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from sqlmodel import Session

from inspector.audit.subjects import Audited
from inspector.final_states import final_states
from inspector.store import labels, replays, states
from inspector.store.labels import Pick

MORE = 10.0  # times as much is graded again of what is in doubt


class Shares(NamedTuple):
    """Of what has a final state, how much is graded again."""

    paid: float = 0.05
    unpaid: float = 0.01

    def in_doubt(self) -> Shares:
        """Of what is watched or on probation."""
        return Shares(min(1.0, self.paid * MORE), min(1.0, self.unpaid * MORE))


def sample(session: Session, audited: Sequence[Audited], shares: Shares) -> None:
    """Have the chosen ones graded again. Several states of one episode are none that a verifier takes."""
    left = [(a, states_[0]) for a in audited if a.state is not None and a.subject.reward is not None and len(states_ := final_states(a.header)) == 1]
    doubted = states.of_tasks(session, {(a.subject.project, a.subject.task) for a, _ in left}) if left else {}
    chosen = [(a.subject.key, state) for a, state in left if _is_chosen(a, shares.in_doubt() if (a.subject.project, a.subject.task) in doubted else shares)]
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
