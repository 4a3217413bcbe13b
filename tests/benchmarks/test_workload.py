"""The same trajectories in every run, of the size that is said, and none that the door refuses."""

from __future__ import annotations

import pytest

from benchmarks import workload
from benchmarks.workload import Posted
from inspector import gates
from inspector.settings import Limits


def test_the_same_name_gives_the_same_trajectories_and_another_name_others() -> None:
    assert workload.short("a", 3) == workload.short("a", 3)
    assert {one.line for one in workload.short("a", 3)}.isdisjoint({one.line for one in workload.short("b", 3)})


def test_eight_of_a_hundred_are_planted() -> None:
    assert sum(one.planted is not None for one in workload.short("a", 100)) == 8


@pytest.mark.parametrize(("posted", "steps", "size"), [(workload.short("a", 50), 20, 20_800), (workload.long("a", 2), 400, 4_100_000)])
def test_sizes_are_as_they_are_said(posted: list[Posted], steps: int, size: int) -> None:
    assert sum(len(one.line) for one in posted) / len(posted) == pytest.approx(size, rel=0.05)
    read = [gates.read(gates.admit(one.line, Limits()).line) for one in posted]
    assert {len(trajectory.steps) for trajectory in read if trajectory} == {steps}
    assert not any(trajectory.defects for trajectory in read)
