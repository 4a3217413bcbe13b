"""An isolation forest as arrays: numpy alone scores it, all trees at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROWS = 128  # walked together: what one level of all trees touches stays in the cache

Floats = NDArray[np.float64]
Rows = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Forest:
    """Perfect binary trees of one depth. Below a leaf that lies higher every node is a copy of it.

    A node at position i of its level has its children at 2i and 2i + 1 of the next; values above the threshold go right.
    """

    feature: NDArray[np.int16]  # (trees, nodes), level by level
    threshold: Rows  # (trees, nodes): rounded down from sklearn's, which for values of 32 bits is the same question
    path: Floats  # (trees, leaves): how deep a leaf lies, with what its rest would add
    scale: float  # the mean of `path` for noise, summed over all trees

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Forest:
        """From what `arrays` gave. Raises KeyError."""
        return cls(arrays["feature"], arrays["threshold"], arrays["path"], float(arrays["scale"]))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that it is made of, by name."""
        return {"feature": self.feature, "threshold": self.threshold, "path": self.path, "scale": np.array(self.scale)}

    @property
    def depth(self) -> int:
        return int(self.path.shape[1]).bit_length() - 1

    def score(self, rows: NDArray[Any]) -> Floats:
        """Of each row, in (0, 1): the higher, the odder. Rows must hold no NaN."""
        values = np.ascontiguousarray(rows, np.float32)
        if len(values) <= ROWS:
            return self._score(values)
        return np.concatenate([self._score(values[at : at + ROWS]) for at in range(0, len(values), ROWS)])

    def _score(self, values: Rows) -> Floats:
        trees, nodes = self.feature.shape
        first = np.arange(trees, dtype=np.int64)
        begins = (np.arange(len(values), dtype=np.int64) * values.shape[1])[:, None]
        at = np.zeros((len(values), trees), np.int64)
        for level in range(self.depth):
            node = at + (first * nodes + (1 << level) - 1)
            value = values.ravel().take(self.feature.ravel().take(node) + begins)
            at *= 2
            at += value > self.threshold.ravel().take(node)
        paths = self.path.ravel().take(at + first * self.path.shape[1])
        scores: Floats = 2.0 ** (-paths.sum(axis=1) / self.scale)
        return scores


def flattened(trees: Sequence[Any], samples: int) -> Forest:
    """The trees of sklearn's IsolationForest, each fitted on that many samples."""
    depth = max(1, *(int(tree.max_depth) for tree in trees))
    feature = np.zeros((len(trees), (1 << depth) - 1), np.int16)
    threshold = np.full(feature.shape, np.inf, np.float32)
    path = np.zeros((len(trees), 1 << depth))
    for number, tree in enumerate(trees):
        _place(tree, depth, feature[number], threshold[number], path[number])
    return Forest(feature, threshold, path, len(trees) * float(average_path(np.array([samples]))[0]))


def _place(tree: Any, depth: int, feature: NDArray[np.int16], threshold: Rows, path: Floats) -> None:
    """One tree: the node of each position, from the root down."""
    rest = average_path(tree.n_node_samples)
    below = [(0, 0, 0)]  # node, level, position in its level
    while below:
        node, level, position = below.pop()
        if tree.children_left[node] < 0:
            width = 1 << (depth - level)
            path[position * width : (position + 1) * width] = level + rest[node]
            continue
        at = (1 << level) - 1 + position
        feature[at], threshold[at] = tree.feature[node], _below(tree.threshold[node])
        below += [(tree.children_left[node], level + 1, 2 * position), (tree.children_right[node], level + 1, 2 * position + 1)]


def _below(threshold: float) -> np.float32:
    """The largest number of 32 bits that is not above it."""
    near = np.float32(threshold)
    return near if float(near) <= threshold else np.nextafter(near, np.float32(-np.inf))


def average_path(samples: NDArray[Any]) -> Floats:
    """The mean length of an unsuccessful search in a tree of so many (Liu, Ting and Zhou 2008, equation 1)."""
    many = np.maximum(samples, 3).astype(np.float64)
    length = 2.0 * (np.log(many - 1.0) + np.euler_gamma) - 2.0 * (many - 1.0) / many
    paths: Floats = np.where(samples <= 1, 0.0, np.where(samples == 2, 1.0, length))
    return paths
