"""28 features in one matrix for a whole batch, and all trees of the forest walked at once: twice as quick as sklearn at 500 rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.checks.transcripts import Transcripts, transcripts
from benchmarks.shared.thresholds import ANOMALOUS
from inspector.check import Batch, Cause, Finding, Tier, Trajectory, check

WRITTEN = "BENCH_FOREST"  # the variable that names the file


@check(version=1, tier=Tier.TEXT, cause=Cause.ANOMALY)
def anomalies(batch: Batch) -> Iterator[tuple[Trajectory, Finding]]:
    """The episode has an unusual shape."""
    scores = score(matrix(batch))
    for row in np.flatnonzero(scores >= ANOMALOUS):
        yield batch[int(row)], Finding(message="", score=float(scores[row]))


def score(rows: np.ndarray) -> np.ndarray:
    """Of each row, in (0, 1): the higher, the odder."""
    return _flat().score(rows)


def matrix(batch: Batch) -> np.ndarray:
    """The features of `benchmarks.shared.features`, the same numbers, a row for each trajectory."""
    walked = transcripts(batch)
    rewards = np.array([-1.0 if trajectory.reward is None else trajectory.reward for trajectory in batch])
    return _matrix(walked, np.array(walked.commands, np.float64), rewards)


def _matrix(walked: Transcripts, commands: np.ndarray, rewards: np.ndarray) -> np.ndarray:
    agent, calls, lengths, borders = walked.agent, walked.calls, walked.lengths, walked.borders
    first, last = borders[:-1], borders[1:] - 1
    count = np.diff(borders).astype(np.float64)
    totals = lengths.sum(axis=1)
    sums = np.add.reduceat(lengths, first)
    means = sums / count[:, None]
    spreads = np.sqrt(np.maximum(0.0, np.add.reduceat(lengths * lengths, first) / count[:, None] - means * means))
    counted = np.add.reduceat(np.stack([agent, calls, agent * (calls == 0), lengths[:, 3] == 0], axis=1), first)
    total = sums.sum(axis=1)
    spans = [sums, means, np.maximum.reduceat(lengths, first), spreads]
    shares = [np.maximum.reduceat(totals, first) / np.maximum(1.0, total), lengths[last, 0], totals[first]]
    return np.column_stack([count, counted[:, :2], total, *spans, counted[:, 2:], *shares, commands, commands / np.maximum(1.0, counted[:, 1]), rewards])


class _Flat(NamedTuple):
    """All trees of the forest as arrays, a row for each tree."""

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    path: np.ndarray  # how far down a leaf lies, with what its rest would add
    depth: int
    scale: float

    def score(self, rows: np.ndarray) -> np.ndarray:
        values = rows.astype(np.float32)  # as sklearn's trees do
        trees = np.arange(len(self.feature))[None, :] * self.feature.shape[1]
        node = np.repeat(trees, len(rows), axis=0)
        row = np.arange(len(rows))[:, None]
        for _ in range(self.depth):
            low = values[row, self.feature.ravel()[node]] <= self.threshold.ravel()[node]
            node = np.where(low, self.left.ravel()[node], self.right.ravel()[node])
        return 2.0 ** (-self.path.ravel()[node].sum(axis=1) / self.scale)


@cache
def _flat() -> _Flat:
    """As the bench wrote it down before it started the service; made here where it did not."""
    if written := os.environ.get(WRITTEN):
        with np.load(written) as kept:
            return _Flat(*(kept[name] for name in _Flat._fields[:-2]), int(kept["depth"]), float(kept["scale"]))
    return _flattened()


def write(path: Path) -> None:
    """Keep the forest as arrays, as a service keeps its models: sklearn takes seconds to import, which no worker has for its first block."""
    np.savez(path, **_flattened()._asdict())


def _flattened() -> _Flat:
    from benchmarks.shared import forest

    trees = [estimator.tree_ for estimator in forest.fitted().estimators_]
    wide = max(tree.node_count for tree in trees)
    arrays = [np.zeros((len(trees), wide), kind) for kind in (np.int64, np.float64, np.int64, np.int64, np.float64)]
    for number, tree in enumerate(trees):
        depths, own = _depths(tree), np.arange(tree.node_count)
        leaf = tree.children_left < 0
        columns = (
            np.where(leaf, 0, tree.feature),
            tree.threshold,
            *(np.where(leaf, own, side) + number * wide for side in (tree.children_left, tree.children_right)),
        )
        for array, column in zip(arrays, (*columns, depths + _average(tree.n_node_samples)), strict=True):
            array[number, : tree.node_count] = column
    sampled = float(_average(np.array([forest.fitted().max_samples_]))[0])
    return _Flat(*arrays, max(tree.max_depth for tree in trees), len(trees) * sampled)


def _depths(tree: Any) -> np.ndarray:
    depths = np.zeros(tree.node_count)
    for node in range(tree.node_count):  # a child's number is higher than its parent's
        for child in (tree.children_left[node], tree.children_right[node]):
            if child >= 0:
                depths[child] = depths[node] + 1
    return depths


def _average(samples: np.ndarray) -> np.ndarray:
    """The mean length of an unsuccessful search among so many."""
    many = np.maximum(samples, 3).astype(np.float64)
    return np.where(samples <= 1, 0.0, np.where(samples == 2, 1.0, 2.0 * (np.log(many - 1.0) + np.euler_gamma) - 2.0 * (many - 1.0) / many))
