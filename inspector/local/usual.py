"""What is ordinary, learnt from files that the user names: those to be judged cannot say it of themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from inspector import gates
from inspector.anomaly import learning
from inspector.anomaly.features import COUNT, matrix
from inspector.anomaly.forest import Floats
from inspector.anomaly.model import Place
from inspector.anomaly.oddness import Fit
from inspector.check import Baselines
from inspector.errors import InspectorError, UnreadableInput
from inspector.formats import Refused
from inspector.local.sources import Sources
from inspector.trajectory import Trajectory

BLOCK = 256
UNGIVEN = "name files of ordinary episodes to compare with (audit --baseline FILES)"
UNKNOWN = f"fewer than {learning.NEEDED_OF_ENVIRONMENT} episodes of this environment version are in the files to compare with"


class TooFew(InspectorError):
    """The files to compare with hold too little to tell what is ordinary."""


@dataclass(frozen=True)
class Usual:
    """The baselines of some files, by environment version."""

    known: Mapping[Place, Baselines] = field(default_factory=dict)
    otherwise: Baselines = field(default_factory=lambda: Baselines(why=UNGIVEN))

    def of(self, places: Iterable[Place]) -> dict[Place, Baselines]:
        """What the checks of these environment versions may ask for."""
        return {place: self.known.get(place, self.otherwise) for place in places}


def usual_of(sources: Sources, fit: Fit) -> Usual:
    """Of these files, oldest episodes first. Raises TooFew, and UnreadableInput where a file cannot be read."""
    rows: dict[Place, list[Floats]] = {}
    order: dict[Place, list[int]] = {}
    for at, (place, row) in enumerate(_episodes(sources)):
        rows.setdefault(place, []).append(row)
        order.setdefault(place, []).append(at)
    windows = [
        learning.Window(place, np.array(mine).reshape(-1, COUNT), np.array(order[place]), np.zeros(len(mine), bool)) for place, mine in sorted(rows.items())
    ]
    model = learning.learn(windows, fit)
    if model is None:
        seen = sum(map(len, rows.values()))
        raise TooFew(
            f"{seen} episodes to compare with, where {learning.NEEDED} are needed, in environment versions with {learning.NEEDED_OF_ENVIRONMENT} or more each"
        )
    return Usual(model.baselines(), Baselines(why=UNKNOWN))


def _episodes(sources: Sources) -> Iterator[tuple[Place, Floats]]:
    """The features of each, a block at a time."""
    block: list[Trajectory] = []
    for found in sources.read():
        if isinstance(found, Refused):
            raise UnreadableInput(f"{found.source}: {found.reason}")
        block.append(gates.read(found.line))
        if len(block) == BLOCK:
            yield from _features(block)
            block = []
    yield from _features(block)


def _features(block: Sequence[Trajectory]) -> Iterator[tuple[Place, Floats]]:
    for trajectory, row in zip(block, matrix(block), strict=True):
        yield (trajectory.environment.id, trajectory.environment.version), row
