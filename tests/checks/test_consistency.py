"""What is said where a verifier contradicts itself."""

from __future__ import annotations

import pytest

from checks.consistency import replay_disagrees, same_state_another_reward
from inspector.check import History, NotAssessed, Replayed, Twin
from inspector.testing import trajectory


def found(reward, *others, **parameters):
    history = History(same_state={"run7-s12-g3-0": [Twin(id_, paid) for id_, paid in others]})
    return [finding.message for finding in same_state_another_reward(trajectory(reward=reward), history, **parameters)]


def test_the_others_are_named():
    assert found(1.0, ("a", 0.0), ("b", 1.0), ("c", None), ("d", 0.5)) == ["the same final state was rewarded with 1 here, but 'a' got 0, 'd' got 0.5"]
    assert found(0.0, *((f"t{at}", 1.0) for at in range(9)), listed=1) == ["the same final state was rewarded with 0 here, but 't0' got 1 and 8 more differ"]


def test_the_tolerance_is_relative():
    assert found(100.0, ("a", 100.9)) == []
    assert found(100.0, ("a", 101.1))
    assert found(0.0, ("a", 0.02))
    assert found(0.0, ("a", 0.02), tolerance=0.05) == []


def again(reward, replayed):
    return [finding.message for finding in replay_disagrees(trajectory(reward=reward), History(replays={"run7-s12-g3-0": replayed}))]


def test_what_was_paid_again_is_counted():
    (message,) = again(1.0, Replayed([0.0, 1.0, 1.0]))
    assert message == "the same final state was rewarded with 1 here, and graded again with 1 (2 of 3), 0 (1 of 3)"
    assert again(None, Replayed([0.0])) == []


@pytest.mark.parametrize(("replayed", "why"), [(None, "not graded again"), (Replayed((), "broken: no box"), "broken: no box")])
def test_no_grade_is_no_zero(replayed, why):
    with pytest.raises(NotAssessed, match=why):
        again(0.0, replayed) if replayed else list(replay_disagrees(trajectory(), History()))


def test_what_was_graded_before_the_sandbox_failed_counts():
    assert again(1.0, Replayed([0.0], "broken: no box"))
    assert again(1.0, Replayed([1.0], "broken: no box")) == []
