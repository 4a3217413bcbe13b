"""Which updates a version descends from, against the definition."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from inspector.contamination.lineage import inherits, line, parents


class Made(NamedTuple):
    policy_before: int
    policy_after: int


versions = st.integers(0, 8)
runs = st.lists(st.tuples(versions, st.integers(0, 3)).map(lambda pair: Made(pair[0], pair[0] + pair[1])), max_size=14)


def parent(updates: list[Made], at: int) -> int | None:
    """The newest update before it that made this version or an earlier one, and that none in between left behind."""
    for before in range(at - 1, -1, -1):
        kept = all(updates[later].policy_before >= updates[before].policy_after for later in range(before + 1, at + 1))
        if kept:
            return before
    return None


@given(runs)
def test_parents_are_as_defined(updates: list[Made]) -> None:
    assert parents(updates) == [parent(updates, at) for at in range(len(updates))]


@given(runs, st.sets(st.integers(0, 13)))
def test_what_descends_from_something_bad_inherits_it(updates: list[Made], bad: set[int]) -> None:
    def ancestors(at: int) -> set[int]:
        up = parent(updates, at)
        return set() if up is None else {up} | ancestors(up)

    assert inherits(updates, [at in bad for at in range(len(updates))]) == [bool(ancestors(at) & bad) for at in range(len(updates))]
    if updates:
        assert line(updates) == [updates[at] for at in sorted({len(updates) - 1} | ancestors(len(updates) - 1))]


def test_a_run_that_went_back_leaves_behind_what_came_after() -> None:
    told = [Made(0, 1), Made(1, 2), Made(2, 3), Made(1, 2), Made(2, 3)]
    assert line(told) == [told[0], told[3], told[4]]
    assert inherits(told, [False, True, False, False, False]) == [False, False, True, False, False]


def test_a_report_that_is_missing_clears_nothing() -> None:
    assert inherits([Made(0, 1), Made(1, 2), Made(4, 5)], [False, True, False]) == [False, False, True]


def test_without_updates_there_is_nothing() -> None:
    assert (parents([]), line([])) == ([], [])
