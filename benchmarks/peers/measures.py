"""The four checks as they are usually written: `re` pattern by pattern, sklearn, zlib, and MinHash as datasketch does it."""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from benchmarks.shared import references, texts, thresholds
from benchmarks.shared.features import features
from benchmarks.shared.patterns import PATTERNS

Body = dict[str, Any]
_COMPILED = [(name, re.compile(pattern)) for name, pattern in PATTERNS]
PERMUTATIONS, PRIME, MOST = 128, np.uint64((1 << 61) - 1), np.uint64((1 << 32) - 1)


class Found(NamedTuple):
    flagged: bool
    score: float
    details: list[str]


def signatures(text: str) -> Found:
    hits = [name for name, pattern in _COMPILED if pattern.search(text)]
    return Found(bool(hits), float(len(hits)), hits)


def compression(text: str) -> Found:
    raw = text.encode()
    ratio = len(zlib.compress(raw, 6)) / max(1, len(raw))
    return Found(ratio < thresholds.LOOPING, ratio, [])


def near_duplicates(text: str) -> Found:
    alike = (_known_sketches() == sketch(references.shingles(text))).mean(axis=1)
    known = int(alike.argmax())
    flagged = bool(alike[known] >= thresholds.COPIED)
    return Found(flagged, float(alike[known]), [f"known-{known}"] if flagged else [])


def anomalies(matrix: Sequence[Sequence[float]]) -> list[Found]:
    """Of one or of many at once."""
    from benchmarks.shared import forest  # sklearn takes seconds to import, and the API has no need of it

    return [Found(bool(score >= thresholds.ANOMALOUS), float(score), []) for score in -forest.fitted().score_samples(np.array(matrix))]


def numbers(body: Body) -> list[float]:
    return features(texts.shape(body["trajectory"], body["reward"]))


TEXT_CHECKS: dict[str, Callable[[str], Found]] = {"signatures": signatures, "compression": compression, "near_duplicates": near_duplicates}


def selected() -> list[str]:
    """The checks of this run; the second table leaves the forest out."""
    return [*TEXT_CHECKS] if os.environ.get("BENCH_WITHOUT_FOREST") else [*TEXT_CHECKS, "anomalies"]


def sketch(shingles: set[str]) -> np.ndarray:
    """128 minima of permuted SHA-1 values, all shingles at once."""
    hashes = np.array([int.from_bytes(hashlib.sha1(shingle.encode(), usedforsecurity=False).digest()[:4], "little") for shingle in shingles], dtype=np.uint64)
    if not len(hashes):
        return np.full(PERMUTATIONS, MOST, dtype=np.uint64)
    a, b = _permutations()
    return (((hashes[:, None] * a + b) % PRIME) & MOST).min(axis=0)


@cache
def _permutations() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.RandomState(1)
    drawn = [(random.randint(1, int(PRIME), dtype=np.uint64), random.randint(0, int(PRIME), dtype=np.uint64)) for _ in range(PERMUTATIONS)]
    a, b = np.array(drawn, dtype=np.uint64).T
    return a, b


@cache
def _known_sketches() -> np.ndarray:
    return np.stack([sketch(references.shingles(text)) for text in references.texts()])
