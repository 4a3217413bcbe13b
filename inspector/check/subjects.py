"""What a check may inspect, and what it may ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inspector.errors import NotAssessed
from inspector.task import Declaration
from inspector.trajectory import Trajectory

# --- subjects --------------------------------------------------------------------------------------------------------


class Batch(Sequence[Trajectory]):
    """Trajectories inspected together for speed; a check must judge each as if it were alone."""

    def __init__(self, trajectories: Sequence[Trajectory]) -> None:
        self._trajectories = trajectories

    def __getitem__(self, at: Any) -> Any:
        return self._trajectories[at]

    def __len__(self) -> int:
        return len(self._trajectories)


@dataclass(frozen=True, slots=True)
class Group:
    """The rollouts of one task under one policy version, once all have come or nothing came for a while."""

    id: str
    trajectories: Sequence[Trajectory]
    complete: bool = True  # False when it was closed because nothing came any more


# --- needs -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Twin:
    """Another trajectory with the same steps, or with the same final state."""

    id: str
    reward: float | None


@dataclass(frozen=True, slots=True)
class Replayed:
    """What the verifier paid when it graded a trajectory's final state again."""

    rewards: Sequence[float]
    trouble: str = ""  # why there are none, or not all that were wanted


class History:
    """What the project posted before, as far as checks may ask. Whoever calls the engine fills it once for a whole block.

    The mappings are keyed by a trajectory's `key`, or by its `id` where nothing was stored (`key` is empty then): a
    block may hold trajectories of several projects, and only our own key tells them apart.
    """

    def __init__(
        self,
        twins: Mapping[str, Sequence[Twin]] | None = None,
        tasks_of_group: Mapping[str, Sequence[str]] | None = None,
        same_state: Mapping[str, Sequence[Twin]] | None = None,
        replays: Mapping[str, Replayed] | None = None,
    ) -> None:
        self._twins = twins or {}
        self._tasks = tasks_of_group or {}
        self._same_state = same_state or {}
        self._replays = replays or {}

    def twins(self, trajectory: Trajectory) -> Sequence[Twin]:
        """Trajectories of the same environment version and task whose steps are the same but for ids and times."""
        return self._twins.get(trajectory.key or trajectory.id, ())

    def tasks_of_group(self, trajectory: Trajectory) -> Sequence[str]:
        """Every task id that was posted under this trajectory's group id, in the same run."""
        return self._tasks.get(trajectory.key or trajectory.id, ())

    def same_state(self, trajectory: Trajectory) -> Sequence[Twin]:
        """Trajectories of the same environment version and task that left the same final state to the same verifier; none where an episode was cut."""
        return self._same_state.get(trajectory.key or trajectory.id, ())

    def replayed(self, trajectory: Trajectory) -> Replayed | None:
        """What came of grading its final state again; None where that was not done, or not yet."""
        return self._replays.get(trajectory.key or trajectory.id)


class Baselines:
    """What is normal for an environment version in this project; empty where nothing was learnt yet, and `why` says what that takes."""

    def __init__(self, models: Mapping[str, Any] | None = None, why: str = "") -> None:
        self._models = models or {}
        self._why = f": {why}" if why else ""

    def model(self, name: str) -> Any:
        """The fitted model of that name; raises NotAssessed where there is none yet."""
        if name not in self._models:
            raise NotAssessed(f"baselines: {name}{self._why}")
        return self._models[name]


@dataclass(frozen=True, slots=True)
class Probed:
    """What the last probe that could tell said of a trajectory's task."""

    said: frozenset[str] | None = None  # its outcomes, as `exploitable`; None where the task was never probed
    address: str = ""  # of the probe

    @property
    def outcomes(self) -> frozenset[str]:
        """What was said; raises NotAssessed where the task was never probed."""
        if self.said is None:
            raise NotAssessed("probe: none yet")
        return self.said


@dataclass(frozen=True, slots=True)
class Payments:
    """What a trajectory's environment version paid for the same final answer, over all its tasks; see `inspector.final_answers`."""

    answered: bool = False  # whether its final answer is all that could be graded; the rest is empty otherwise
    paid: Sequence[str] = ()  # tasks that paid it and never refused it, 64 at most
    apart: frozenset[tuple[str, str]] = frozenset()  # pairs of them, sorted, where another answer was paid under one and refused under the other
    offered: int = 0  # tasks under which it was given
    refused: int = 0  # of these, those that refused it
    own: int = 0  # answers that one of the tasks in `paid` pays and another refuses
    shared: int = 0  # the same, paid by two of them that are told apart: then the tasks may share right answers


class Sandbox:
    """A place to run foreign code; the need for it puts a check in the late lane."""


class Judge:
    """A model that reads transcripts; the need for it puts a check in the late lane."""


SUBJECTS: tuple[type, ...] = (Trajectory, Batch, Group)
FAST_NEEDS: tuple[type, ...] = (Declaration, Baselines, History, Payments, Probed)
LATE_NEEDS: tuple[type, ...] = (Sandbox, Judge)
