"""Segment files: what was posted, written so that it lasts, and read back."""

from inspector.store.segments.files import StepWindow
from inspector.store.segments.places import path_of, prepare
from inspector.store.segments.reading import SegmentReader, StretchRecord
from inspector.store.segments.writing import SegmentWriter
from inspector.store.stretches import CorruptSegment, Location, Stretch, located, stretches_of

__all__ = [
    "CorruptSegment",
    "Location",
    "SegmentReader",
    "SegmentWriter",
    "StepWindow",
    "Stretch",
    "StretchRecord",
    "located",
    "path_of",
    "prepare",
    "stretches_of",
]
