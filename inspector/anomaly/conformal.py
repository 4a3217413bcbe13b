"""From scores to p-values, and from p-values to what may be called unusual.

A p-value is the share of ordinary episodes that score as high (Vovk et al.; Bates et al. 2104.08279): with `n` of them
it is never below 1 / (n + 1). An episode is called unusual where Benjamini and Hochberg's rule at rate q rejects it
beside the newest p-values of its project, its peers. So it gets one answer, in whatever batch it comes and however
often, and of all that are called unusual no more than a share of q is ordinary, on average. Where nothing unusual
happens at all, one ordinary episode in n + 1 is called so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.anomaly.forest import Floats


def p_values(scores: NDArray[Any], calibration: Floats) -> Floats:
    """Of each score, against those of ordinary episodes in rising order; higher scores are odder."""
    as_high = len(calibration) - np.searchsorted(calibration, scores, side="left")
    p: Floats = (1.0 + as_high.astype(np.float64)) / (len(calibration) + 1.0)
    return p


def peers_of(ordinary: int) -> int:
    """How many of so many scored episodes are peers, so that among the rest one that is odder than all can be told at a rate of 0.10."""
    return max(0, (ordinary - 9) // 11)


def cutoff(peers: Floats, rate: float) -> float:
    """The largest p-value that is rejected beside these, which are in rising order; 0.0 where there are none to be beside.

    The rule takes the largest threshold that enough peers pass, which is often one that too many passed by chance; so
    their number is lessened by its own standard deviation. Without that the rate comes out at 0.11 to 0.19, not 0.10.
    """
    if not len(peers):
        return 0.0
    thresholds = rate * np.arange(1, len(peers) + 2) / (len(peers) + 1.0)
    passing = np.searchsorted(peers, thresholds, side="right")
    enough = passing - np.sqrt(passing) >= np.arange(len(peers) + 1)
    return float(thresholds[enough][-1])  # the first always holds: it needs nobody beside
