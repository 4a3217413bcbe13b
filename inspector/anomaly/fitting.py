"""Fits an isolation forest; the only module that imports sklearn, which costs a second and 100 MB.

    python -m inspector.anomaly.fitting <rows.npy >forest.npz

is the same in a process of its own: whoever scores never loads it.
"""

from __future__ import annotations

import subprocess
import sys
from io import BytesIO

import numpy as np

from inspector.anomaly.arrays import packed, unpacked
from inspector.anomaly.forest import Forest, Rows, flattened
from inspector.errors import Unavailable

TREES = 200
SAMPLES = 256  # that each tree sees


def fit(rows: Rows) -> Forest:
    """The same rows give the same forest."""
    from sklearn.ensemble import IsolationForest

    forest = IsolationForest(n_estimators=TREES, max_samples=min(SAMPLES, len(rows)), random_state=0).fit(rows)
    return flattened([estimator.tree_ for estimator in forest.estimators_], forest.max_samples_)


def fit_apart(rows: Rows, *, limit_s: float) -> Forest:
    """The same in a process of its own, which is ended after `limit_s`. Raises Unavailable where it gave nothing."""
    out = BytesIO()
    np.save(out, rows, allow_pickle=False)
    try:
        done = subprocess.run([sys.executable, "-m", "inspector.anomaly.fitting"], input=out.getvalue(), capture_output=True, timeout=limit_s, check=True)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        raise Unavailable(f"no forest was fitted: {error}") from error
    return Forest.of(unpacked(done.stdout))


def main() -> None:
    """From rows on stdin to a forest on stdout."""
    rows = np.load(BytesIO(sys.stdin.buffer.read()), allow_pickle=False)
    _import_quickly()
    sys.stdout.buffer.write(packed(fit(rows).arrays()))


def _import_quickly() -> None:
    """sklearn loads pandas where somebody installed it, which takes as long again, and has no need of it."""
    sys.modules["pandas"] = None  # type: ignore[assignment]  # what may not be imported
    import sklearn.ensemble  # noqa: F401

    del sys.modules["pandas"]


if __name__ == "__main__":
    main()
