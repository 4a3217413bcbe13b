"""What was learnt of a project's episodes: what is usual in each environment, a forest, and how odd ordinary episodes are."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from inspector.anomaly import conformal
from inspector.anomaly.arrays import BadArrays, packed, unpacked
from inspector.anomaly.features import NAMES
from inspector.anomaly.forest import Floats, Rows
from inspector.anomaly.oddness import Oddness
from inspector.anomaly.scaling import Scales
from inspector.check import Baselines

BASELINE = "episode_shape"  # the name by which a check asks for it

Place = tuple[str, str]  # environment id and version


class _Header(msgspec.Struct, frozen=True):
    features: tuple[str, ...]
    environments: tuple[Place, ...]
    episodes: int


@dataclass(frozen=True, eq=False)
class Model:
    """Nothing in it changes after it was learnt: the same episode gets the same answer from it for ever."""

    environments: tuple[Place, ...]
    scales: Scales  # a row for each environment
    oddness: Oddness
    calibration: Floats  # scores of ordinary episodes, rising
    peers: Floats  # p-values of the newest episodes, rising
    episodes: int  # that it was learnt from
    version: int = 0  # of its project's models; 0 where it is stored nowhere

    def standardised(self, rows: NDArray[Any], environments: NDArray[np.int64]) -> Rows:
        """How far each value lies from what is usual in its environment."""
        return self.scales.standardised(rows, environments)

    def p_values(self, standardised: Rows) -> Floats:
        """The share of ordinary episodes that are as odd."""
        return conformal.p_values(self.oddness.score(standardised), self.calibration)

    def cutoff(self, rate: float) -> float:
        """The largest p-value that is called unusual."""
        if rate not in self._cutoffs:
            self._cutoffs[rate] = conformal.cutoff(self.peers, rate)
        return self._cutoffs[rate]

    def baselines(self) -> dict[Place, Baselines]:
        """What the checks of each environment version may ask for."""
        return {place: Baselines({BASELINE: Normal(self, at)}) for at, place in enumerate(self.environments)}

    @cached_property
    def _cutoffs(self) -> dict[float, float]:
        return {}

    # --- as bytes ----------------------------------------------------------------------------------------------------

    def packed(self) -> bytes:
        """The same model gives the same bytes."""
        header = msgspec.json.encode(_Header(NAMES, self.environments, self.episodes))
        own: dict[str, NDArray[Any]] = {"header": np.frombuffer(header, np.uint8), "calibration": self.calibration, "peers": self.peers}
        scales = {"location": self.scales.location, "spread": self.scales.spread}
        return packed({**own, **scales, **self.oddness.arrays()})


def unpack(body: bytes, version: int = 0) -> Model | None:
    """The model in these bytes; None where it was learnt from other features than these. Raises BadArrays."""
    found = unpacked(body)
    try:
        header = msgspec.json.decode(found["header"].tobytes(), type=_Header)
        if header.features != NAMES:
            return None
        scales = Scales(found["location"], found["spread"])
        return Model(header.environments, scales, Oddness.of(found), found["calibration"], found["peers"], header.episodes, version)
    except (KeyError, msgspec.DecodeError) as error:
        raise BadArrays(f"not a model: {error}") from error


def digest(body: bytes) -> bytes:
    """Of a packed model."""
    return hashlib.sha256(body).digest()


class Normal(NamedTuple):
    """What is usual in one environment version."""

    model: Model
    environment: int  # its row

    def usual(self) -> Floats:
        """The usual value of each feature, transformed as in the matrix."""
        location: Floats = self.model.scales.location[self.environment]
        return location


def unlearnt(places: Sequence[Place], why: str) -> Mapping[Place, Baselines]:
    """Baselines that hold nothing, and say why."""
    return dict.fromkeys(places, Baselines(why=why))
