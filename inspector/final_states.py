"""Which state an episode left behind, told by the digests of what was attached to it."""

from __future__ import annotations

import hashlib

from inspector.trajectory import Header

ROLE = "final_state"


def final_states(header: Header) -> list[str]:
    """The sha256 of each attached final state in hexadecimal, sorted."""
    return sorted({artifact.sha256.removeprefix("sha256:") for artifact in header.artifacts or () if artifact.role == ROLE})


def state_digest(header: Header) -> bytes | None:
    """Bytes that are equal where the same state was graded by the same verifier.

    None where no state is attached, and where the episode was cut: its reward may speak of the limit.
    """
    cut = header.termination is not None and (header.termination.truncated or header.termination.timed_out)
    if cut or not (states := final_states(header)):
        return None
    return hashlib.sha256("\n".join([header.environment.verifier_digest or "", *states]).encode()).digest()
