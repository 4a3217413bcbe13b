"""The two kinds of text that are scanned: the transcript as it was posted, and the actions read from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from inspector.signatures import deeds, transcript
from inspector.signatures.places import DEEDS, TRANSCRIPT, Field, Place
from inspector.trajectory import Trajectory


class Surface(NamedTuple):
    """Gives the texts of some places, their addresses in the same order, and what an address means."""

    places: frozenset[Place]
    texts: Callable[[Trajectory, frozenset[Place]], tuple[list[str], str]]  # each, and all joined
    addresses: Callable[[Trajectory, frozenset[Place]], Sequence[Any]]  # of each text; begins with its place
    field: Callable[[Any], Field]  # at an address


SURFACES = (
    Surface(frozenset(TRANSCRIPT), transcript.texts_of, transcript.addresses_of, transcript.field_at),
    Surface(frozenset(DEEDS), deeds.texts_of, deeds.addresses_of, deeds.field_at),
)
