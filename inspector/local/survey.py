"""The first pass over the files: what each trajectory's checks must know of the others.

Kept are an id and a digest a trajectory, and what several trajectories share: the rewards given for the same steps or the
same final state, the tasks of a group, and the tasks that paid or refused an answer. So verdicts do not depend on the order
of the files, and memory not on their length.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from inspector.check import Declaration, History, Payments, Twin
from inspector.final_states import state_digest
from inspector.formats import Refused
from inspector.payments import Ledger
from inspector.signatures.transcript import content_hash
from inspector.trajectory import Header, Trajectory

TWINS = 16  # that are kept of one content or state, those with the lowest and the highest rewards

Group = tuple[str | None, str]  # (run, name): as the service tells groups apart


class Content(NamedTuple):
    """What twins share; or, with a digest of what was left, what those share that left the same."""

    digest: bytes
    environment: str
    version: str
    task: str


class Rewards:
    """Of each content that several share: who got what."""

    def __init__(self) -> None:
        self._first: dict[Content, Twin] = {}
        self._shared: dict[Content, list[Twin]] = {}

    def add(self, content: Content, twin: Twin) -> None:
        """Take note of one more."""
        first = self._first.setdefault(content, twin)
        if first is not twin:
            shared = self._shared.setdefault(content, [first])
            shared.append(twin)
            if len(shared) >= 4 * TWINS:
                shared[:] = _extremes(shared)

    def beside(self, content: Content | None, id_: str) -> list[Twin]:
        """The others."""
        return [twin for twin in self._shared.get(content, ()) if twin.id != id_] if content else []


class Survey:
    """What was seen of all files together."""

    def __init__(self) -> None:
        self.trajectories = 0
        self.duplicates = 0
        self.refused: list[Refused] = []
        self._digests: dict[str, bytes] = {}
        self._by_steps, self._by_state = Rewards(), Rewards()
        self._ledger = Ledger()
        self._task: dict[Group, str] = {}
        self._tasks: dict[Group, set[str]] = {}  # of groups with more than one

    def add(self, trajectory: Trajectory, line: bytes, source: str, declaration: Declaration) -> None:
        """Take note of a trajectory. One that was there already counts once; another under the same id is refused, as the service does."""
        digest, known = digest_of(line), self._digests.get(trajectory.id)
        if known is not None:
            self.duplicates += known == digest
            if known != digest:
                self.refused.append(Refused(source, f"$.id: another trajectory came under the id {trajectory.id!r} before"))
            return
        self._digests[trajectory.id] = digest
        self.trajectories += 1
        self._remember(trajectory)
        self._ledger.add(trajectory, declaration)

    def knows(self, trajectory: Trajectory, line: bytes) -> bool:
        """Whether this very line was surveyed, and was the first under its id."""
        return self._digests.get(trajectory.id) == digest_of(line)

    def history(self, block: Sequence[Trajectory]) -> History:
        """What the checks of a block may ask for."""
        twins = {t.id: others for t in block if (others := self._by_steps.beside(content_of(t), t.id))}
        left = {t.id: others for t in block if (others := self._by_state.beside(left_by(t), t.id))}
        tasks = {t.id: sorted(self._tasks.get(group, ())) or [self._task[group]] for t in block if (group := group_of(t.header))}
        return History(twins, tasks, left)

    def payments(self, block: Sequence[Trajectory]) -> dict[str, Payments]:
        """What was paid for the final answers of a block."""
        return {t.id: self._ledger.of(t) for t in block}

    def _remember(self, trajectory: Trajectory) -> None:
        twin = Twin(trajectory.id, trajectory.reward)
        self._by_steps.add(content_of(trajectory), twin)
        if (left := left_by(trajectory)) is not None:
            self._by_state.add(left, twin)
        if group := group_of(trajectory.header):
            task = self._task.setdefault(group, trajectory.task.id)
            if task != trajectory.task.id:
                self._tasks.setdefault(group, {task}).add(trajectory.task.id)


def _extremes(twins: Iterable[Twin]) -> list[Twin]:
    """If any twin was paid otherwise than a given trajectory, then so was one of these."""
    scored = sorted((twin for twin in twins if twin.reward is not None), key=lambda twin: (twin.reward or 0.0, twin.id))
    return scored if len(scored) <= TWINS else scored[: TWINS // 2] + scored[-TWINS // 2 :]


def content_of(trajectory: Trajectory) -> Content:
    """The same for the same steps of one task of one environment version."""
    return _of_task(content_hash(trajectory), trajectory)


def left_by(trajectory: Trajectory) -> Content | None:
    """The same for the same final state of one task of one environment version."""
    digest = state_digest(trajectory.header)
    return None if digest is None else _of_task(digest, trajectory)


def _of_task(digest: bytes, trajectory: Trajectory) -> Content:
    return Content(digest[:8], trajectory.environment.id, trajectory.environment.version, trajectory.task.id)


def group_of(header: Header) -> Group | None:
    """A group's name is its own only within its run."""
    return (header.run.id if header.run else None, header.group.id) if header.group else None


def digest_of(line: bytes) -> bytes:
    return hashlib.sha256(line).digest()[:16]
