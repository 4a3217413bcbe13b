"""A transcript that says the same over and over compresses to almost nothing."""

from __future__ import annotations

from collections.abc import Iterator

import zstandard

from benchmarks.checks.transcripts import transcripts
from benchmarks.shared.thresholds import LOOPING
from inspector.check import Batch, Cause, Finding, Tier, Trajectory, check

QUICK = zstandard.ZstdCompressionParameters.from_level(-20, window_log=15, hash_log=11)  # quicker than lz4: only loops are to be told from the rest


@check(version=1, tier=Tier.TEXT, cause=Cause.ANOMALY)
def compression(batch: Batch) -> Iterator[tuple[Trajectory, Finding]]:
    """The transcript repeats itself from beginning to end."""
    compress = zstandard.ZstdCompressor(compression_params=QUICK).compress
    for trajectory, text in zip(batch, transcripts(batch).texts, strict=True):
        ratio = len(compress(text)) / max(1, len(text))
        if ratio < LOOPING:
            yield trajectory, Finding(message="", score=min(1.0, 1.0 - ratio))
