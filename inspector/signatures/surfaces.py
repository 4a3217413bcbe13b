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
    texts: Callable[[Trajectory, frozenset[Place]], tuple[list[str], str, bytes]]  # each, and all joined, also as UTF-8
    addresses: Callable[[Trajectory, frozenset[Place]], Sequence[Any]]  # of each text; begins with its place
    field: Callable[[Any], Field]  # at an address


def _of_transcript(trajectory: Trajectory, places: frozenset[Place]) -> tuple[list[str], str, bytes]:
    return transcript.transcript(trajectory)[:3]  # of all places: a rule's own are told apart where something was found


def _addresses(trajectory: Trajectory, places: frozenset[Place]) -> Sequence[transcript.Address]:
    return transcript.addresses_of(trajectory)


SURFACES = (
    Surface(frozenset(TRANSCRIPT), _of_transcript, _addresses, transcript.field_at),
    Surface(frozenset(DEEDS), deeds.texts_of, deeds.addresses_of, deeds.field_at),
)
