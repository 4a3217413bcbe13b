"""Sketches of whole batches in a few array operations: hashes of the 32 bytes at the beginning of each line, of which one in four is kept.

Which are kept depends on the hash alone, so two texts keep the same of what they share (FracMinHash, Irber et al. 2022).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from benchmarks.checks.transcripts import transcripts
from benchmarks.shared import references
from benchmarks.shared.thresholds import COPIED
from inspector.check import Batch, Cause, Finding, Tier, Trajectory, check

SMALLEST = 128  # hashes of one sketch
KEPT = np.uint64(4)  # one hash in so many
OWNER_BITS = 16  # of a sort key; the other 48 are the hash
_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93], dtype=np.uint64)
_MASK, _SHIFT, _FOLD = np.uint64((1 << 48) - 1), np.uint64(48), np.uint64(29)


@check(version=1, tier=Tier.ACTION, cause=Cause.POLICY_EXPLOIT)
def near_duplicates(batch: Batch) -> Iterator[tuple[Trajectory, Finding]]:
    """Most of the episode's lines are those of a solution that was published."""
    for row, known, share in _copied(transcripts(batch).texts):
        yield batch[row], Finding(message=f"known-{known}", score=min(1.0, share))


def _copied(block: Sequence[bytes]) -> Iterator[tuple[int, int, float]]:
    """(position in the block, number of the known text, share of the sketch that is in the known one's)."""
    owners, hashes = sketches(block)
    sizes = np.maximum(1, np.bincount(owners, minlength=len(block)))
    known, of = _known()
    places = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
    common = known[places] == hashes
    counts = np.bincount(owners[common] * references.KNOWN + of[places[common]], minlength=len(block) * references.KNOWN)
    shares = counts.reshape(-1, references.KNOWN) / sizes[:, None]
    for row, number in zip(*np.nonzero(shares >= COPIED), strict=True):
        yield int(row), int(number), float(shares[row, number])


@cache
def _known() -> tuple[np.ndarray, np.ndarray]:
    """Sorted hashes of the known texts, and whose each is."""
    of, hashes = sketches([text.encode() for text in references.texts()])
    order = np.argsort(hashes)
    return hashes[order], of[order]


def sketches(block: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """(position in the block, hash) of the distinct hashes that are kept of each text, the smallest of them where they are many."""
    data = b"\n".join([b"", *block, bytes(32)])
    lines = np.flatnonzero(np.frombuffer(data, np.uint8) == 10)[:-1] + 1
    words = np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))  # eight bytes at every position
    hashes = np.zeros(len(lines), np.uint64)
    for at, factor in enumerate(_FACTORS):
        hashes = (hashes ^ words[lines + 8 * at]) * factor
        hashes ^= hashes >> _FOLD
    ends = np.searchsorted(lines, np.cumsum([1] + [len(text) + 1 for text in block]))
    owner = np.repeat(np.arange(len(block), dtype=np.uint64), np.diff(ends))
    hashes = hashes[: len(owner)] & _MASK
    kept = np.flatnonzero(hashes % KEPT == 0)
    keys = np.sort((owner[kept] << _SHIFT) | hashes[kept])
    keys = keys[np.concatenate(([True], keys[1:] != keys[:-1]))]
    owners = (keys >> _SHIFT).astype(np.int64)
    rank = np.arange(len(keys)) - np.searchsorted(owners, np.arange(len(block)))[owners]
    small = rank < SMALLEST
    return owners[small], (keys & _MASK)[small]
