"""The two kinds of text that are scanned: the transcript as it was posted, and the actions read from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from inspector.signatures import deeds, transcript
from inspector.signatures.places import DEEDS, TRANSCRIPT, Field, Place
from inspector.trajectory import Trajectory


class Surface(NamedTuple):
    """Gives the texts of some places, and their addresses in the same order."""

    places: frozenset[Place]
    texts: Callable[[Trajectory, frozenset[Place]], tuple[list[str], str]]  # each, and all joined
    fields: Callable[[Trajectory, frozenset[Place]], Sequence[Field]]


SURFACES = (
    Surface(frozenset(TRANSCRIPT), transcript.texts_of, transcript.fields_of),
    Surface(frozenset(DEEDS), deeds.texts_of, deeds.fields_of),
)
